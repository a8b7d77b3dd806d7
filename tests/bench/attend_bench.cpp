// Reading a cache on the cpu backend: the rebuild of a tile of keys against the machine's peak, and one decoded token
// of one layer over 4,096 cached tokens, compressed and exact. Times of a layer; a token of SmolLM2 has 30 of them.

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/kernels.h"
#include "benchmark/benchmark.h"
#include "tests/bench/bench_layer.h"
#include "tests/bench/fma_peak.h"

namespace foldkv::bench {
namespace {

using test::MemoryBlock;
using test::Random;

constexpr int64_t kKeyWidth = kSmolLm2.key_width();

double rebuild_flops(int64_t latents) { return 2.0 * kKeyWidth * kKeyWidth * static_cast<double>(latents); }

// Threads, instruction set.
void attend_layer(benchmark::State& state, const std::string& set, const CachedTokens& tokens) {
  const auto threads = static_cast<int32_t>(state.range(0));
  const auto device = test::open_backend({"cpu", &backend::cpu_plugin(), set}, threads);
  BenchLayer layer(*device, kSmolLm2, tokens);
  for (auto _ : state) layer.attend(*device, backend::Arithmetic::kExact);
  state.counters["rebuild GFLOP/s"] =
      benchmark::Counter(rebuild_flops(tokens.latents) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["30 layers ms"] =
      benchmark::Counter(1e-3 / 30.0, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
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
  CachedTokens tokens;
};
constexpr AttendBench kAttendBenches[] = {
    {"decode_compressed_4096", {4096, 68, 1}},
    {"decode_exact_4096", {0, 4096, 1}},
    {"decode_8_rows_compressed_4096", {4096, 68, 8}},
    {"prefill_exact_1024_rows", {0, 1024, 1024}},
    {"prefill_256_rows_over_4096_latents", {4096, 324, 256}},
};

[[maybe_unused]] const bool registered = [] {
  for (const test::BackendChoice& choice : test::tested_choices()) {
    const std::string& set = choice.instruction_set;
    benchmark::RegisterBenchmark(("rebuild_tile/" + set).c_str(),
                                 [set](benchmark::State& state) { rebuild_tile(state, set); });
    for (const AttendBench& bench : kAttendBenches) {
      benchmark::RegisterBenchmark((std::string(bench.name) + "/" + set).c_str(),
                                   [set, bench](benchmark::State& state) { attend_layer(state, set, bench.tokens); })
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
