#include <limits>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {
namespace {

struct ConvertCase {
  NumberFormat from = NumberFormat::kF32;
  NumberFormat to = NumberFormat::kF16;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t padding = 0;
  double size = 1.0;
  bool edge = false;  // `number` stands at the end
  float number = 0.0f;
};

Outcome run(const ConvertCase& convert_case, backend::Backend& backend, std::byte fill) {
  Random random(13);
  auto numbers = random.normals<float>(convert_case.rows * convert_case.columns, convert_case.size);
  if (convert_case.edge) numbers.back() = convert_case.number;
  const TensorMemory input(convert_case.from, convert_case.rows, convert_case.columns,
                           convert_case.columns + convert_case.padding, fill, numbers);
  const TensorMemory output(convert_case.to, convert_case.rows, convert_case.columns, convert_case.columns, fill);
  Outcome outcome;
  outcome.set_status(backend.convert(input.view(), output.view()));
  outcome.expect(output.canary_alive(), "written beyond the output");
  outcome.fields.push_back(equal_field("output", output.numbers(), convert_case.columns));
  return outcome;
}

Row row_of(const ConvertCase& convert_case) {
  return {absl::StrCat(convert_case.rows, " x ", convert_case.columns, " ", std::string(name_of(convert_case.from)),
                       " to ", std::string(name_of(convert_case.to)), " size ", convert_case.size,
                       convert_case.edge ? absl::StrCat(" with ", convert_case.number) : ""),
          [convert_case](backend::Backend& backend, std::byte fill) { return run(convert_case, backend, fill); }};
}

Row random_row(Random& random) {
  return row_of({random.pick(all_formats()), random.pick(all_formats()), random.between(1, 6), random.between(1, 130),
                 random.between(0, 4), random.pick(std::vector<double>{1e-8, 1e-5, 1.0, 1000.0}), false, 0.0f});
}

}  // namespace

OperationRows convert_rows() {
  OperationRows table{Operation::kConvert, {}, random_row};
  for (const NumberFormat from : all_formats()) {
    for (const NumberFormat to : all_formats()) {
      table.rows.push_back(row_of({from, to, 1, 1, 0, 1.0, false, 0.0f}));
      table.rows.push_back(row_of({from, to, 5, 131, 3, 1.0, false, 0.0f}));
      table.rows.push_back(row_of({from, to, 2, 64, 0, 1e-6, false, 0.0f}));  // subnormal halves
      for (const float number : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity()}) {
        table.rows.push_back(row_of({from, to, 2, 19, 1, 1.0, true, number}));
      }
    }
  }
  // The last number that fits, the first that does not, ties and the smallest of each kind.
  for (const float number : {65504.0f, -65519.0f, 65520.0f, -65536.0f, 1e30f, 2049.0f, 2051.0f, 0x1p-24f, 0x1p-25f,
                             0x1.8p-24f, 0x1.000002p-25f, 0x1.ffep-15f, -0.0f, 1e-45f}) {
    table.rows.push_back(row_of({NumberFormat::kF32, NumberFormat::kF16, 1, 35, 0, 1.0, true, number}));
  }
  for (const float number : {3.38e38f, 3.3961775e38f, std::numeric_limits<float>::max(), 257.0f, 259.0f, -0.0f}) {
    table.rows.push_back(row_of({NumberFormat::kF32, NumberFormat::kBF16, 1, 35, 0, 1.0, true, number}));
  }
  return table;
}

}  // namespace foldkv::test
