#include "backends/reference/mean.h"

#include "backends/reference/exact_row.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

// Column by column, so that no array of sums is needed.
Status mean(const MeanRequest& request) {
  const StackedRows& rows = request.rows;
  for (int64_t column = 0; column < rows.width(); ++column) {
    const ExactRegion& layer = rows.layers[static_cast<size_t>(column / rows.layout.width)];
    double sum = 0.0;
    for (int64_t t = 0; t < rows.count; ++t) {
      const std::byte* const row = exact_row(rows.layout, layer.pages, rows.slot(t), rows.side);
      sum += static_cast<double>(number_at(rows.layout.format, row, column % rows.layout.width));
    }
    const double value = sum / static_cast<double>(rows.count);
    if (!write_number(NumberFormat::kF16, reinterpret_cast<std::byte*>(request.mean), column, value)) {
      return numeric_error(absl::StrCat("the mean ", value, " of stacked column ", column, " is not finite in f16"));
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
