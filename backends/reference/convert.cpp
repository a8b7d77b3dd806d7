#include "backends/reference/convert.h"

#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

Status convert(const TensorView& input, const MutableTensorView& output) {
  for (int64_t row = 0; row < input.row_count; ++row) {
    for (int64_t column = 0; column < input.column_count; ++column) {
      const float number = number_at(input.format, input.row(row), column);
      if (!write_number(output.format, output.row(row), column, static_cast<double>(number))) {
        return numeric_error(absl::StrCat("number ", number, " in row ", row, ", column ", column, " is not finite in ",
                                          std::string(name_of(output.format))));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
