#include "backends/cpu/rotation_table.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/checked.h"
#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

class Table {
 public:
  explicit Table(std::vector<double> frequencies, Pairing pairing = Pairing::kHalfSplit, double scale = 1.0)
      : frequencies_(std::move(frequencies)),
        memory_(static_cast<size_t>(rotation_table_bytes(std::ssize(frequencies_)))) {
    Rotation rotation{pairing, std::ssize(frequencies_), scale, frequencies_.data(), memory_.data()};
    write_rotation_table(rotation, memory_.data());
    table_ = rotation_table(rotation);
  }
  [[nodiscard]] const RotationTable& get() const { return table_; }
  [[nodiscard]] const std::vector<double>& frequencies() const { return frequencies_; }

 private:
  std::vector<double> frequencies_;
  std::vector<std::byte> memory_;
  RotationTable table_;
};

std::vector<double> usual_frequencies(int64_t pairs, double base) {
  std::vector<double> frequencies;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    frequencies.push_back(std::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs)));
  }
  return frequencies;
}

TEST_CASE("angles are right to 1e-6 at every position up to 2^31") {
  const Table table(usual_frequencies(37, 10000.0));
  test::Random random(1);
  std::vector<int32_t> positions = {0, 1, 127, 128, 129, 16383, 16384, 131071, 131072, 1'000'003,
                                    std::numeric_limits<int32_t>::max()};
  for (int i = 0; i < 2000; ++i) {
    positions.push_back(static_cast<int32_t>(random.between(0, int64_t{1} << random.between(1, 30))));
  }
  test::for_each_kernel_set([&](const Kernels& kernels) {
    double worst = 0.0;
    for (const int32_t position : positions) {
      std::vector<float> cosines(37);
      std::vector<float> sines(37);
      kernels.rotation_row(table.get(), position, cosines.data(), sines.data());
      for (size_t pair = 0; pair < 37; ++pair) {
        const double angle = position * table.frequencies()[pair];
        worst = std::max(worst, std::abs(static_cast<double>(cosines[pair]) - std::cos(angle)));
        worst = std::max(worst, std::abs(static_cast<double>(sines[pair]) - std::sin(angle)));
      }
    }
    MESSAGE("largest error of an angle's cosine or sine: ", worst);
    CHECK(worst < 1e-6);
  });
}

TEST_CASE("a position has the same angle in a row, in a run and among others, to the last bit") {
  constexpr int64_t kPairs = 40;
  const Table table(usual_frequencies(kPairs, 500000.0), Pairing::kInterleaved, 1.25);
  test::Random random(2);
  test::for_each_kernel_set([&](const Kernels& kernels) {
    for (const int64_t start : {0, 1, 65, 100, 127, 16320, 16321, 2097100, 131071}) {
      std::vector<int32_t> run(kTile);
      std::vector<int32_t> shuffled(kTile);
      for (int32_t i = 0; i < kTile; ++i) run[static_cast<size_t>(i)] = static_cast<int32_t>(start) + i;
      for (size_t i = 0; i < kTile; ++i) shuffled[i] = run[i * 37 % kTile];
      std::vector<float> scratch(static_cast<size_t>(2 * kTile * round_up(kPairs, kWidthPadding)));
      std::vector<float> cosines[2], sines[2];
      for (int side = 0; side < 2; ++side) {
        cosines[side].resize(kPairs * kTile);
        sines[side].resize(kPairs * kTile);
        kernels.rotation_tile(table.get(), side == 0 ? run.data() : shuffled.data(), scratch.data(),
                              cosines[side].data(), sines[side].data());
      }
      int64_t wrong = 0;
      for (size_t token = 0; token < kTile; ++token) {
        std::vector<float> row_cosines(kPairs), row_sines(kPairs);
        kernels.rotation_row(table.get(), shuffled[token], row_cosines.data(), row_sines.data());
        const size_t in_run = token * 37 % kTile;
        for (size_t pair = 0; pair < kPairs; ++pair) {
          wrong += row_cosines[pair] != cosines[0][pair * kTile + in_run] ? 1 : 0;
          wrong += row_cosines[pair] != cosines[1][pair * kTile + token] ? 1 : 0;
          wrong += row_sines[pair] != sines[0][pair * kTile + in_run] ? 1 : 0;
          wrong += row_sines[pair] != sines[1][pair * kTile + token] ? 1 : 0;
        }
      }
      CHECK(wrong == 0);
    }
  });
}

// Rows and tiles: [tokens][heads][head_size].
TEST_CASE("golden/rotation.json, in rows and in tiles") {
  const nlohmann::json file = test::read_golden("rotation");
  for (const auto& golden : file["cases"]) {
    const bool interleaved = golden["pairing"] == "interleaved";
    const Table table(test::numbers(golden["inverse_frequencies"]),
                      interleaved ? Pairing::kInterleaved : Pairing::kHalfSplit, golden["scale"].get<double>());
    const int64_t pairs = table.get().pairs;
    const auto head_size = golden["head_size"].get<int64_t>();
    const auto positions = golden["positions"].get<std::vector<int32_t>>();
    const std::vector<float> x = test::numbers_f32(golden["x"]);
    const std::vector<double> expected = test::numbers(golden["rotated"]);
    const int64_t heads = std::ssize(x) / (std::ssize(positions) * head_size);
    test::for_each_kernel_set([&](const Kernels& kernels) {
      for (size_t token = 0; token < positions.size(); ++token) {
        std::vector<float> cosines(static_cast<size_t>(pairs)), sines(static_cast<size_t>(pairs));
        kernels.rotation_row(table.get(), positions[token], cosines.data(), sines.data());
        std::vector<float> lane_cosines(static_cast<size_t>(pairs * kTile)), lane_sines(lane_cosines.size());
        std::vector<float> scratch(2 * kTile * 256);
        const std::vector<int32_t> same(kTile, positions[token]);
        kernels.rotation_tile(table.get(), same.data(), scratch.data(), lane_cosines.data(), lane_sines.data());
        for (int64_t head = 0; head < heads; ++head) {
          const int64_t first = (static_cast<int64_t>(token) * heads + head) * head_size;
          std::vector<float> row(x.begin() + first, x.begin() + first + head_size);
          std::vector<float> tile(static_cast<size_t>(head_size * kTile));
          for (size_t i = 0; i < tile.size(); ++i) tile[i] = row[i / kTile];
          kernels.rotate_row(table.get(), cosines.data(), sines.data(), row.data());
          kernels.rotate_tile(table.get(), lane_cosines.data(), lane_sines.data(), tile.data());
          for (int64_t i = 0; i < head_size; ++i) {
            const double wanted = expected[static_cast<size_t>(first + i)];
            CHECK(static_cast<double>(row[static_cast<size_t>(i)]) == doctest::Approx(wanted).epsilon(2e-6));
            CHECK(tile[static_cast<size_t>(i * kTile + 63)] == row[static_cast<size_t>(i)]);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu
