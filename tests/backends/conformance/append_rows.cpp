#include <limits>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/exact_pages.h"

namespace foldkv::test {
namespace {

using backend::Side;

struct AppendCase {
  NumberFormat from = NumberFormat::kF32;
  NumberFormat to = NumberFormat::kF16;
  int64_t rows = 1;
  int64_t heads = 1;
  int64_t head_size = 1;
  int64_t page_tokens = 4;
  int64_t first_slot = 0;
  bool norm = false;
  int64_t padding = 0;
  double size = 1.0;
  // A number put at the end of one side.
  bool odd = false;
  Side side = Side::kKeys;
  float number = 0.0f;
};

// Slots before and after the new rows hold what they held.
bool others_untouched(const ExactPages& pages, const AppendCase& append_case, int64_t slots, std::byte fill) {
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (slot >= append_case.first_slot && slot < append_case.first_slot + append_case.rows) continue;
    for (const Side side : {Side::kKeys, Side::kValues}) {
      const std::byte* const row = pages.row(side, slot);
      if (!std::all_of(row, row + pages.layout().row_bytes(), [=](std::byte b) { return b == fill; })) return false;
    }
  }
  return true;
}

Outcome run(const AppendCase& append_case, backend::Backend& backend, std::byte fill) {
  const int64_t width = append_case.heads * append_case.head_size;
  const int64_t slots = append_case.first_slot + append_case.rows + 3;
  const backend::ExactLayout layout{append_case.page_tokens, width, append_case.to};
  Random random(15);
  auto keys = random.normals<float>(append_case.rows * width, append_case.size);
  auto values = random.normals<float>(append_case.rows * width, append_case.size);
  const auto norm = random.normals<float>(append_case.head_size);
  if (append_case.odd) (append_case.side == Side::kKeys ? keys : values).back() = append_case.number;
  const TensorMemory key_tensor(append_case.from, append_case.rows, width, width + append_case.padding, fill, keys);
  const TensorMemory value_tensor(append_case.from, append_case.rows, width, width, fill, values);
  const ExactPages pages(layout, slots, fill);
  Outcome outcome;
  outcome.set_status(
      backend.append({key_tensor.view(), value_tensor.view(), append_case.head_size,
                      append_case.norm ? norm.data() : nullptr, 1e-6, layout, pages.region(), append_case.first_slot}));
  outcome.expect(pages.pool().canaries_alive() && others_untouched(pages, append_case, slots, fill),
                 "written beyond the new slots");
  // Without a norm a number is rounded once; a norm may differ in the last bit before that.
  Field stored_keys = equal_field("keys", pages.numbers(Side::kKeys, append_case.first_slot, append_case.rows), width);
  if (append_case.norm) {
    stored_keys.kind = FieldKind::kNumbers;
    stored_keys.tolerance = {std::max(step_of(append_case.to), 1e-6), 1e-6,
                             append_case.to == NumberFormat::kF16 ? 0x1p-24 : 0.0};
  }
  outcome.fields.push_back(std::move(stored_keys));
  outcome.fields.push_back(
      equal_field("values", pages.numbers(Side::kValues, append_case.first_slot, append_case.rows), width));
  return outcome;
}

Row row_of(const AppendCase& append_case) {
  std::string odd;
  if (append_case.odd) {
    odd = absl::StrCat(" with ", append_case.number, append_case.side == Side::kKeys ? " in keys" : " in values");
  }
  return {absl::StrCat(append_case.rows, " rows, ", append_case.heads, " heads of ", append_case.head_size, " ",
                       std::string(name_of(append_case.from)), " to ", std::string(name_of(append_case.to)), " at ",
                       append_case.first_slot, append_case.norm ? " norm" : "", " size ", append_case.size, odd),
          [append_case](backend::Backend& backend, std::byte fill) { return run(append_case, backend, fill); }};
}

Row random_row(Random& random) {
  AppendCase append_case{random.pick(all_formats()), random.pick(all_formats()), random.between(1, 9),
                         random.between(1, 4),       random.between(1, 130),     random.between(1, 8),
                         random.between(0, 9),       random.chance(0.5),         random.between(0, 4)};
  append_case.size = random.pick(std::vector<double>{0.0, 1e-3, 1.0, 100.0});
  return row_of(append_case);
}

void add_odd_numbers(NumberFormat from, NumberFormat to, OperationRows& table) {
  std::vector<float> numbers = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()};
  if (from == NumberFormat::kF32) {
    for (const float number : {65504.0f, 65519.0f, 65520.0f, -1e6f, 3.39e38f, std::numeric_limits<float>::max()}) {
      numbers.push_back(number);
    }
  }
  for (const float number : numbers) {
    for (const Side side : {Side::kKeys, Side::kValues}) {
      AppendCase append_case{from, to, 3, 2, 9, 4, 2, false};
      append_case.odd = true;
      append_case.side = side;
      append_case.number = number;
      table.rows.push_back(row_of(append_case));
    }
  }
}

}  // namespace

OperationRows append_rows() {
  OperationRows table{Operation::kAppend, {}, random_row};
  for (const NumberFormat from : all_formats()) {
    for (const NumberFormat to : all_formats()) {
      for (const bool norm : {false, true}) {
        table.rows.push_back(row_of({from, to, 1, 1, 1, 1, 0, norm}));
        table.rows.push_back(row_of({from, to, 7, 3, 6, 4, 2, norm, 5}));
        table.rows.push_back(row_of({from, to, 70, 2, 80, 32, 31, norm, 1}));
        table.rows.push_back(row_of({from, to, 2, 1, 33, 32, 30, norm, 0, 1e-6}));
        table.rows.push_back(row_of({from, to, 2, 2, 16, 32, 30, norm, 0, 0.0}));
      }
      add_odd_numbers(from, to, table);
    }
  }
  return table;
}

}  // namespace foldkv::test
