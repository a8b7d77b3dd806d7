// Reading a cache on the cpu backend: the rebuild of a tile of keys against the machine's peak, and one decoded token
// of one layer over 4,096 cached tokens, compressed and exact. Times of a layer; a token of SmolLM2 has 30 of them.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cpu/kernels.h"
#include "benchmark/benchmark.h"
#include "tests/bench/fma_peak.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/latent_pages.h"
#include "tests/support/layer_group.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::bench {
namespace {

using test::ExactPages;
using test::LatentPages;
using test::MemoryBlock;
using test::PositionPages;
using test::Random;

// SmolLM2-135M.
constexpr int64_t kKvHeads = 3;
constexpr int64_t kQueryHeads = 9;
constexpr int64_t kHeadSize = 64;
constexpr int64_t kKeyWidth = kKvHeads * kHeadSize;
constexpr int64_t kGroupLayers = 4;

std::vector<int32_t> run_of_positions(int64_t first, int64_t count) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
  return positions;
}

std::vector<double> frequencies() {
  std::vector<double> result;
  for (int64_t pair = 0; pair < kHeadSize / 2; ++pair) {
    result.push_back(std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(kHeadSize)));
  }
  return result;
}

backend::LatentLayout latent_layout() {
  const backend::LatentPlane plane = test::make_plane({{kKeyWidth, 4}}, 128);
  return test::make_layout(plane, plane, 0, 64);
}

// Latents first, exact tokens after them, queries last.
class Sequence {
 public:
  Sequence(backend::Backend& device, int64_t latents, int64_t exact, int64_t rows)
      : random_(1),
        frequencies_(frequencies()),
        rotation_(device, {backend::Pairing::kHalfSplit, kHeadSize / 2, 1.0, frequencies_.data(), nullptr}),
        layout_(latent_layout()),
        latents_(layout_, latents, test::kZero),
        exact_({32, kKeyWidth, NumberFormat::kF16}, exact, test::kZero),
        latent_positions_(run_of_positions(0, latents), 64, test::kZero),
        exact_positions_(run_of_positions(latents, exact), 32, test::kZero),
        query_positions_(run_of_positions(latents + exact - rows, rows)),
        basis_(test::random_basis(random_, kGroupLayers * kKeyWidth, kKeyWidth)),
        mean_(test::halves(random_.normals<float>(kGroupLayers * kKeyWidth))),
        queries_(random_.normals<float>(rows * kQueryHeads * kHeadSize)),
        context_(queries_.size()),
        workspace_(device.attend_workspace({kQueryHeads, kKvHeads, kHeadSize, kKeyWidth, kKeyWidth, 0, rows, 1,
                                            latents + exact}),
                   test::kZero) {
    latents_.randomize(random_, 0, latents, 1.0);
    for (int64_t slot = 0; slot < exact; ++slot) {
      exact_.put(backend::Side::kKeys, slot, random_.normals<float>(kKeyWidth).data());
      exact_.put(backend::Side::kValues, slot, random_.normals<float>(kKeyWidth).data());
    }
    sequence_ = {.exact = exact_.region(),
                 .exact_positions = exact_positions_.region(),
                 .latent = {latents_.pool().pages(), latents, mean_.data(), mean_.data(), nullptr},
                 .latent_positions = latent_positions_.region(),
                 .row_count = rows,
                 .query_positions = query_positions_.data()};
  }

  void attend(backend::Backend& device) {
    const backend::AttendRequest request = {
        .rules = {kQueryHeads, kKvHeads, kHeadSize, 0.125, 0.0, 0, rotation_.get()},
        .exact_layout = exact_.layout(),
        .latent = {&layout_, basis_.data(), basis_.data(), 0},
        .sequences = {&sequence_, 1},
        .queries = queries_.data(),
        .context = context_.data(),
        .workspace = workspace_.data()};
    if (!device.attend(request).ok()) std::abort();
    benchmark::DoNotOptimize(context_.data());
  }

 private:
  Random random_;
  std::vector<double> frequencies_;
  test::PreparedRotation rotation_;
  backend::LatentLayout layout_;
  LatentPages latents_;
  ExactPages exact_;
  PositionPages latent_positions_;
  PositionPages exact_positions_;
  std::vector<int32_t> query_positions_;
  std::vector<float> basis_;
  std::vector<uint16_t> mean_;
  std::vector<float> queries_;
  std::vector<float> context_;
  MemoryBlock workspace_;
  backend::AttendSequence sequence_;
};

double rebuild_flops(int64_t latents) { return 2.0 * kKeyWidth * kKeyWidth * static_cast<double>(latents); }

// Threads, instruction set.
void attend_sequence(benchmark::State& state, const std::string& set, int64_t latents, int64_t exact, int64_t rows) {
  const auto threads = static_cast<int32_t>(state.range(0));
  const auto device = test::open_backend({"cpu", &backend::cpu_plugin(), set}, threads);
  Sequence sequence(*device, latents, exact, rows);
  for (auto _ : state) sequence.attend(*device);
  state.counters["rebuild GFLOP/s"] = benchmark::Counter(rebuild_flops(latents) * 1e-9,
                                                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["30 layers ms"] = benchmark::Counter(
      1e-3 / 30.0, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Keys of all heads of one tile: [192][192] x [192][64].
void rebuild_tile(benchmark::State& state, const std::string& set) {
  const backend::cpu::Kernels& kernels = *backend::cpu::find_kernels(set.c_str());
  Random random(2);
  const std::vector<float> basis = random.normals<float>(kKeyWidth * kKeyWidth);
  const std::vector<float> latents = random.normals<float>(kKeyWidth * backend::cpu::kTile);
  MemoryBlock keys(kKeyWidth * backend::cpu::kTile * 4, test::kZero);
  const double before = fma_peak(set);
  for (auto _ : state) {
    kernels.matrix_product({.rows = kKeyWidth,
                            .columns = backend::cpu::kTile,
                            .depth = kKeyWidth,
                            .a = basis.data(),
                            .a_stride = kKeyWidth,
                            .b = latents.data(),
                            .b_stride = backend::cpu::kTile,
                            .c = reinterpret_cast<float*>(keys.data()),
                            .c_stride = backend::cpu::kTile});
    benchmark::DoNotOptimize(keys.data());
  }
  const double peak = std::max(before, fma_peak(set));
  const double work = rebuild_flops(backend::cpu::kTile) * 1e-9;
  state.counters["GFLOP/s"] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
  if (peak > 0.0) {
    state.counters["of peak"] = benchmark::Counter(work / peak, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["peak GFLOP/s"] = peak;
  }
}

struct AttendBench {
  const char* name;
  int64_t latents;
  int64_t exact;
  int64_t rows;
};
constexpr AttendBench kAttendBenches[] = {
    {"decode_compressed_4096", 4096, 68, 1},
    {"decode_exact_4096", 0, 4096, 1},
    {"decode_8_rows_compressed_4096", 4096, 68, 8},
    {"prefill_exact_1024_rows", 0, 1024, 1024},
    {"prefill_256_rows_over_4096_latents", 4096, 324, 256},
};

[[maybe_unused]] const bool registered = [] {
  for (const test::BackendChoice& choice : test::tested_choices()) {
    const std::string& set = choice.instruction_set;
    benchmark::RegisterBenchmark(("rebuild_tile/" + set).c_str(),
                                 [set](benchmark::State& state) { rebuild_tile(state, set); });
    for (const AttendBench& bench : kAttendBenches) {
      benchmark::RegisterBenchmark((std::string(bench.name) + "/" + set).c_str(),
                                   [set, bench](benchmark::State& state) {
                                     attend_sequence(state, set, bench.latents, bench.exact, bench.rows);
                                   })
          ->Arg(1)
          ->Arg(2)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace foldkv::bench
