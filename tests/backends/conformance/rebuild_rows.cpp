#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/group_data.h"

namespace foldkv::test {
namespace {

using backend::Side;

struct RebuildCase {
  GroupShape shape;
  Side side = Side::kKeys;
  bool corrected = false;
  int64_t first = 0;  // of the run's tokens
  int64_t count = 1;
  int64_t first_row = 0;
  int64_t row_count = 1;
};

Outcome run(const RebuildCase& rebuild_case, backend::Backend& backend, std::byte fill) {
  const GroupData data(rebuild_case.shape, 21, fill);
  const int64_t latent_width = data.layout.plane(rebuild_case.side).width;
  const TensorMemory output(NumberFormat::kF32, rebuild_case.count, rebuild_case.row_count, rebuild_case.row_count,
                            fill);
  backend::LatentShape latent_shape = data.latent_shape(data.shape.correction_rank);
  latent_shape.tokens = rebuild_case.count;
  const MemoryBlock workspace(backend.latent_workspace(latent_shape), fill);
  const std::vector<std::byte> before = data.latents.pool().bytes();
  Outcome outcome;
  outcome.set_status(backend.rebuild({&data.layout, data.region(rebuild_case.corrected), rebuild_case.side,
                                      data.shape.first_latent_slot + rebuild_case.first, rebuild_case.count,
                                      data.basis(rebuild_case.side).data() + rebuild_case.first_row * latent_width,
                                      rebuild_case.first_row, rebuild_case.row_count,
                                      reinterpret_cast<float*>(output.view().data), workspace.data()}));
  outcome.expect(output.canary_alive() && workspace.canary_alive(), "written beyond the output or the workspace");
  outcome.expect(data.latents.pool().bytes() == before, "the pages changed");
  outcome.fields.push_back(numbers_field("rows", output.numbers(), rebuild_case.row_count, {1e-6, 2e-6, 1e-6}));
  return outcome;
}

Row row_of(const RebuildCase& rebuild_case) {
  return {absl::StrCat(rebuild_case.side == Side::kKeys ? "keys, " : "values, ", describe(rebuild_case.shape),
                       rebuild_case.corrected ? ", corrected" : "", ", tokens ", rebuild_case.first, " + ",
                       rebuild_case.count, ", rows ", rebuild_case.first_row, " + ", rebuild_case.row_count),
          [rebuild_case](backend::Backend& backend, std::byte fill) { return run(rebuild_case, backend, fill); }};
}

RebuildCase whole(const GroupShape& shape, Side side, bool corrected) {
  return {shape, side, corrected, 0, shape.count, 0, shape.width()};
}

Row random_row(Random& random) {
  RebuildCase rebuild_case;
  rebuild_case.shape = random_group(random);
  rebuild_case.side = random.chance(0.5) ? Side::kKeys : Side::kValues;
  rebuild_case.corrected = random.chance(0.7);
  rebuild_case.first = random.between(0, rebuild_case.shape.count - 1);
  rebuild_case.count = random.between(1, rebuild_case.shape.count - rebuild_case.first);
  rebuild_case.first_row = random.between(0, rebuild_case.shape.width() - 1);
  rebuild_case.row_count = random.between(1, rebuild_case.shape.width() - rebuild_case.first_row);
  return row_of(rebuild_case);
}

GroupShape shape_of(const std::vector<LatentBand>& bands, int64_t scale_group, int64_t rank) {
  GroupShape shape;
  shape.layers = 3;
  shape.layer_width = 24;
  shape.key_bands = bands;
  shape.value_bands = bands;
  shape.scale_group = scale_group;
  shape.correction_rank = rank;
  shape.count = 70;
  shape.first_latent_slot = 3;
  return shape;
}

}  // namespace

OperationRows rebuild_rows() {
  OperationRows table{Operation::kRebuild, {}, random_row};
  for (const Side side : {Side::kKeys, Side::kValues}) {
    for (int32_t bits = 2; bits <= 8; ++bits) {
      for (const int64_t scale_group : {5, 16, 64, 128}) {
        table.rows.push_back(row_of(whole(shape_of({{70, bits}}, scale_group, 0), side, false)));
      }
    }
    for (const LatentBand& band : trellis_bands(70)) {
      for (const int64_t scale_group : {5, 16, 64, 128}) {
        table.rows.push_back(row_of(whole(shape_of({band}, scale_group, 0), side, false)));
      }
    }
    const GroupShape mixed = shape_of({{16, 6}, {16, 4, 1}, {8, 3, 1}, {8, 3, 2}, {5, 1, 1}, {16, 1, 2}, {3, 0}}, 8, 3);
    table.rows.push_back(row_of(whole(mixed, side, true)));
    const GroupShape bands = shape_of({{16, 8}, {24, 4}, {11, 3}, {10, 2}, {11, 0}}, 16, 5);
    for (const bool corrected : {false, true}) {
      table.rows.push_back(row_of(whole(bands, side, corrected)));
      for (const auto& [first_row, row_count] : {std::pair<int64_t, int64_t>{0, 24}, {24, 24}, {48, 24}, {7, 1}}) {
        table.rows.push_back(row_of({bands, side, corrected, 0, 70, first_row, row_count}));
      }
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {69, 1}, {60, 3}, {5, 65}}) {
        table.rows.push_back(row_of({bands, side, corrected, first, count, 24, 24}));
      }
    }
    GroupShape no_means = bands;
    no_means.means = false;
    table.rows.push_back(row_of(whole(no_means, side, true)));
    table.rows.push_back(row_of(whole(shape_of({{5, 0}}, 16, 0), side, false)));  // the mean alone
    GroupShape large = shape_of({{192, 4}, {63, 3}}, 128, 16);
    large.layers = 4;
    large.layer_width = 96;
    table.rows.push_back(row_of(whole(large, side, true)));
  }
  return table;
}

}  // namespace foldkv::test
