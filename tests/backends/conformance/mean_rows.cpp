#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/layer_group.h"

namespace foldkv::test {
namespace {

using backend::Side;

struct MeanCase {
  backend::ExactLayout layout;
  int64_t layers = 1;
  int64_t first_slot = 0;
  int64_t count = 1;
  Side side = Side::kKeys;
  double size = 1.0;
  double offset = 0.0;
};

Outcome run(const MeanCase& mean_case, backend::Backend& backend, std::byte fill) {
  const StackedPages exact(mean_case.layout, mean_case.layers, mean_case.first_slot + mean_case.count + 1, fill);
  const int64_t width = exact.width();
  Random random(18);
  for (int64_t t = 0; t < mean_case.count; ++t) {
    auto row = random.normals<float>(width, mean_case.size);
    for (float& number : row) number += static_cast<float>(mean_case.offset);
    exact.put(mean_case.side, mean_case.first_slot + t, row.data());
  }
  const MemoryBlock mean(width * 2, fill);
  const MemoryBlock workspace(backend.latent_workspace({width, 1, 1, 0, mean_case.count}), fill);
  auto* const halves = reinterpret_cast<uint16_t*>(mean.data());
  Outcome outcome;
  outcome.set_status(
      backend.mean({exact.rows(mean_case.side, mean_case.first_slot, mean_case.count), halves, workspace.data()}));
  outcome.expect(mean.canary_alive() && workspace.canary_alive(), "written beyond the mean or the workspace");
  // Sums in double precision agree to far below an f16 step: a difference can only be that of a tie.
  outcome.fields.push_back(
      numbers_field("mean", wide_halves(halves, width), width, {step_of(NumberFormat::kF16), 0.0, 0x1p-24}));
  return outcome;
}

Row row_of(const MeanCase& mean_case) {
  return {absl::StrCat(mean_case.count, " tokens from ", mean_case.first_slot, ", ", mean_case.layers, " layers of ",
                       mean_case.layout.width, " ", std::string(name_of(mean_case.layout.format)), " size ",
                       mean_case.size, " about ", mean_case.offset),
          [mean_case](backend::Backend& backend, std::byte fill) { return run(mean_case, backend, fill); }};
}

Row random_row(Random& random) {
  return row_of({{random.between(1, 9), random.between(1, 70), random.pick(all_formats())},
                 random.between(1, 4),
                 random.between(0, 5),
                 random.between(1, 90),
                 random.chance(0.5) ? Side::kKeys : Side::kValues,
                 1.0,
                 random.uniform(-3.0, 3.0)});
}

}  // namespace

OperationRows mean_rows() {
  OperationRows table{Operation::kMean, {}, random_row};
  for (const NumberFormat format : all_formats()) {
    for (const Side side : {Side::kKeys, Side::kValues}) {
      table.rows.push_back(row_of({{4, 1, format}, 1, 0, 1, side, 1.0, 0.0}));
      table.rows.push_back(row_of({{32, 48, format}, 4, 4, 200, side, 1.0, 0.5}));
      table.rows.push_back(row_of({{7, 33, format}, 3, 2, 65, side, 0.01, 900.0}));  // Qwen2's bias
      table.rows.push_back(row_of({{32, 5, format}, 2, 0, 10, side, 0.0, 0.0}));
    }
  }
  // Sums far beyond f16, whose mean fits; and a mean that does not.
  table.rows.push_back(row_of({{32, 9, NumberFormat::kF16}, 2, 0, 100, Side::kKeys, 10.0, 60000.0}));
  table.rows.push_back(row_of({{32, 9, NumberFormat::kF32}, 2, 0, 10, Side::kKeys, 1.0, 70000.0}));
  table.rows.push_back(row_of({{32, 9, NumberFormat::kBF16}, 2, 0, 10, Side::kValues, 1.0, -1e30}));
  return table;
}

}  // namespace foldkv::test
