#include <limits>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {
namespace {

struct FiniteCase {
  NumberFormat format = NumberFormat::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t padding = 0;
  int64_t place = -1;  // of the one number that is not finite; -1: none
  float number = 0.0f;
};

Outcome run(const FiniteCase& finite_case, backend::Backend& backend, std::byte fill) {
  Random random(12);
  auto numbers = random.normals<float>(finite_case.rows * finite_case.columns);
  if (finite_case.place >= 0) numbers[static_cast<size_t>(finite_case.place)] = finite_case.number;
  // Padding is poison as often as not: it is none of the operation's business.
  const TensorMemory tensor(finite_case.format, finite_case.rows, finite_case.columns,
                            finite_case.columns + finite_case.padding, fill, numbers);
  const auto finite = backend.all_finite(tensor.view());
  Outcome outcome;
  outcome.set_status(finite.status());
  if (finite.ok()) outcome.fields.push_back(equal_field("finite", {*finite ? 1.0 : 0.0}));
  return outcome;
}

Row row_of(const FiniteCase& finite_case) {
  return {absl::StrCat(finite_case.rows, " x ", finite_case.columns, " ", std::string(name_of(finite_case.format)),
                       " number ", finite_case.number, " at ", finite_case.place),
          [finite_case](backend::Backend& backend, std::byte fill) { return run(finite_case, backend, fill); }};
}

const std::vector<float>& odd_numbers() {
  static const std::vector<float> numbers = {
      std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
      -std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()};
  return numbers;
}

Row random_row(Random& random) {
  FiniteCase finite_case{
      random.pick(all_formats()), random.between(1, 9), random.between(1, 150), random.between(0, 5), -1, 0.0f};
  if (random.chance(0.7)) {
    finite_case.place = random.between(0, finite_case.rows * finite_case.columns - 1);
    finite_case.number = random.pick(odd_numbers());
  }
  return row_of(finite_case);
}

}  // namespace

OperationRows all_finite_rows() {
  OperationRows table{Operation::kAllFinite, {}, random_row};
  for (const NumberFormat format : all_formats()) {
    for (const int64_t columns : {1, 16, 37}) {
      table.rows.push_back(row_of({format, 3, columns, 2, -1, 0.0f}));
      for (const float number : odd_numbers()) {
        for (const int64_t place : {int64_t{0}, columns, 3 * columns - 1}) {
          table.rows.push_back(row_of({format, 3, columns, 2, place, number}));
        }
      }
    }
    // Not even the largest numbers of a format add up to something that is not finite.
    table.rows.push_back(row_of({format, 2, 33, 0, 40, format == NumberFormat::kF16 ? 65504.0f : 3.38e38f}));
  }
  return table;
}

}  // namespace foldkv::test
