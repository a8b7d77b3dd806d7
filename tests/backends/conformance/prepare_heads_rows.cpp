#include <cmath>
#include <limits>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/heads_case.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::test {

std::vector<double> inverse_frequencies(int64_t count) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < count; ++i) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(count)));
  }
  return frequencies;
}

Outcome run_heads(const HeadsCase& heads_case, backend::Backend& backend, std::byte fill) {
  const int64_t width = heads_case.heads * heads_case.head_size;
  const auto rows = static_cast<int64_t>(heads_case.positions.size());
  Random random(14);
  const TensorMemory input(heads_case.format, rows, width, width + heads_case.padding, fill,
                           random.normals<float>(rows * width, heads_case.size));
  const auto norm = random.normals<float>(heads_case.head_size);
  const auto frequencies = inverse_frequencies(heads_case.frequency_count);
  const PreparedRotation rotation(backend, {heads_case.pairing, heads_case.frequency_count, heads_case.rotation_scale,
                                            frequencies.data(), nullptr});
  const TensorMemory output(NumberFormat::kF32, rows, width, width, fill);
  Outcome outcome;
  outcome.set_status(backend.prepare_heads({input.view(), heads_case.heads, heads_case.head_size,
                                            heads_case.norm ? norm.data() : nullptr, 1e-5, rotation.get(),
                                            heads_case.frequency_count > 0 ? heads_case.positions.data() : nullptr,
                                            reinterpret_cast<float*>(output.view().data)}));
  outcome.expect(output.canary_alive() && rotation.canary_alive(), "written beyond the output or the rotation");
  outcome.fields.push_back(numbers_field("output", output.numbers(), heads_case.head_size, {1e-6, 1e-6, 0.0}));
  return outcome;
}

Row heads_row(const HeadsCase& heads_case) {
  return {absl::StrCat(heads_case.positions.size(), " rows, ", heads_case.heads, " heads of ", heads_case.head_size,
                       " ", std::string(name_of(heads_case.format)), heads_case.norm ? " norm" : "", " ",
                       heads_case.frequency_count, " frequencies ",
                       heads_case.pairing == backend::Pairing::kHalfSplit ? "half split" : "interleaved", " scale ",
                       heads_case.rotation_scale, " from ", heads_case.positions.front(), " size ", heads_case.size),
          [heads_case](backend::Backend& backend, std::byte fill) { return run_heads(heads_case, backend, fill); }};
}

Row random_heads_row(Random& random) {
  HeadsCase heads_case;
  heads_case.format = random.pick(all_formats());
  heads_case.heads = random.between(1, 5);
  heads_case.head_size = random.between(1, 140);
  heads_case.padding = random.between(0, 5);
  heads_case.norm = random.chance(0.5);
  heads_case.frequency_count = random.between(0, heads_case.head_size / 2);
  heads_case.pairing = random.chance(0.5) ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved;
  heads_case.rotation_scale = random.uniform(0.5, 2.0);
  for (int64_t row = random.between(1, 9); row > 0; --row) {
    heads_case.positions.push_back(static_cast<int32_t>(random.between(0, random.chance(0.5) ? 5000 : 2147483647)));
  }
  return heads_row(heads_case);
}

OperationRows prepare_heads_rows() {
  OperationRows table{Operation::kPrepareHeads, {}, random_heads_row};
  for (const NumberFormat format : all_formats()) {
    for (const bool norm : {false, true}) {
      for (const int64_t head_size : {1, 2, 3, 6, 8, 16, 64, 80, 96, 128, 256}) {
        HeadsCase heads_case{format, 3, head_size, head_size % 5, norm, head_size / 2};
        heads_case.positions = {0, 1, 17, 4095, 131071};
        heads_case.pairing = head_size % 3 == 0 ? backend::Pairing::kInterleaved : backend::Pairing::kHalfSplit;
        table.rows.push_back(heads_row(heads_case));
        heads_case.frequency_count = 0;
        table.rows.push_back(heads_row(heads_case));
      }
      // Norms of very small and very large rows; zero rows.
      for (const double size : {0.0, 1e-6, 1e-3, 1e4}) {
        table.rows.push_back(heads_row({format, 2, 33, 0, norm, 8, backend::Pairing::kHalfSplit, 1.0, {5, 6}, size}));
      }
    }
  }
  return table;
}

// Field reports 31, 35, 43, 44: partial rotation, magnitude factors, far positions, both pairings.
OperationRows rotation_rows() {
  OperationRows table{Operation::kRotation, {}, random_heads_row};
  for (const backend::Pairing pairing : {backend::Pairing::kHalfSplit, backend::Pairing::kInterleaved}) {
    for (const auto& [head_size, frequency_count] :
         {std::pair<int64_t, int64_t>{80, 16}, {64, 8}, {96, 48}, {128, 64}, {7, 3}, {5, 1}, {2, 1}}) {
      for (const double scale : {1.0, 1.3, 0.1}) {
        HeadsCase heads_case{NumberFormat::kF32, 2, head_size, 0, false, frequency_count, pairing, scale};
        heads_case.positions = {0, 1, 7, 4095, 4096, 8191, 8192, 131071, 262143, std::numeric_limits<int32_t>::max()};
        table.rows.push_back(heads_row(heads_case));
      }
    }
  }
  return table;
}

}  // namespace foldkv::test
