// Dense reading of latents on the cpu backend: the rebuild of one head of a tile against what the machine's registers
// can do, and one decoded token of one layer at the shapes of well-known models, in both arithmetics. Four layers share
// a latent of a layer's key width, 4 bits a coordinate. Counter: ns for each cached token.

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/integer_tile.h"
#include "backends/cpu/kernels.h"
#include "benchmark/benchmark.h"
#include "tests/bench/bench_layer.h"
#include "tests/bench/dot_peak.h"

namespace foldkv::bench {
namespace {

using backend::Arithmetic;
using test::MemoryBlock;
using test::Random;

struct NamedShape {
  const char* name;
  HeadShape heads;
};
constexpr NamedShape kShapes[] = {
    {"smollm2-135m", kSmolLm2}, {"qwen2.5-0.5b", kQwen2}, {"llama-3.2-1b", kLlama1B}, {"llama-3.1-8b", kLlama8B}};

// Threads, tokens.
void decode(benchmark::State& state, const std::string& set, const HeadShape& shape, Arithmetic arithmetic) {
  const auto device = test::open_backend({"cpu", &backend::cpu_plugin(), set}, static_cast<int32_t>(state.range(0)));
  const int64_t tokens = state.range(1);
  BenchLayer layer(*device, shape, {.latents = tokens});
  for (auto _ : state) layer.attend(*device, arithmetic);
  state.counters["ns per token"] = benchmark::Counter(
      static_cast<double>(tokens) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Keys of one head of a tile at the shape of Llama-3.1-8B: [128][1024] x [1024][64].
void rebuild_head(benchmark::State& state, const std::string& set) {
  constexpr int64_t kRows = 128;
  constexpr int64_t kWidth = 1024;
  const auto device = test::open_backend({"cpu", &backend::cpu_plugin(), set}, 1);
  const backend::cpu::Kernels& kernels = *backend::cpu::find_kernels(set.c_str());
  Random random(2);
  const std::vector<float> basis = test::random_basis(random, kRows, kWidth);
  MemoryBlock fast_basis(device->fast_basis_bytes(kRows, kWidth), test::kZero);
  backend::cpu::make_integer_basis(kernels, basis.data(), kRows, kWidth, fast_basis.data());
  const backend::LatentPlane plane = test::make_plane({{kWidth, 4}}, 128);
  const backend::LatentLayout layout = test::make_layout(plane, plane, 0, backend::cpu::kTile);
  test::LatentPages pages(layout, backend::cpu::kTile, test::kZero);
  pages.randomize(random, 0, backend::cpu::kTile, 1.0);
  backend::cpu::Workspace counted(nullptr);
  backend::cpu::IntegerLatents::take(counted, kWidth);
  MemoryBlock memory(counted.bytes(), test::kZero);
  backend::cpu::Workspace workspace(memory.data());
  auto latents = backend::cpu::IntegerLatents::take(workspace, kWidth);
  backend::cpu::decode_integer_latents({.kernels = kernels,
                                        .layout = layout,
                                        .side = backend::Side::kKeys,
                                        .pages = pages.pool().pages(),
                                        .slots = {0, backend::cpu::kTile},
                                        .scratch = {}},
                                       latents);
  MemoryBlock keys(kRows * backend::cpu::kTile * 4, test::kZero);
  const double before = dot_peak(set);
  for (auto _ : state) {
    backend::cpu::rebuild_from_integers(
        kernels, latents,
        {.basis = fast_basis.data(), .width = kWidth, .rows = kRows, .output = reinterpret_cast<float*>(keys.data())});
    benchmark::DoNotOptimize(keys.data());
  }
  const double peak = std::max(before, dot_peak(set));
  const double work = 2.0 * kRows * kWidth * backend::cpu::kTile * 1e-9;
  state.counters["GOP/s"] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
  if (peak > 0.0) {
    state.counters["of peak"] = benchmark::Counter(work / peak, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["peak GOP/s"] = peak;
  }
}

[[maybe_unused]] const bool registered = [] {
  for (const test::BackendChoice& choice : test::tested_choices()) {
    const std::string& set = choice.instruction_set;
    const bool has_integers = backend::cpu::find_kernels(set.c_str())->has_integers;
    if (has_integers)
      benchmark::RegisterBenchmark(("rebuild_head/" + set).c_str(),
                                   [set](benchmark::State& state) { rebuild_head(state, set); });
    for (const NamedShape& shape : kShapes) {
      for (const bool fast : {false, true}) {
        if (fast && !has_integers) continue;
        const std::string name = std::string("decode/") + shape.name + "/" + set + (fast ? "/fast" : "/exact");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [set, shape, fast](benchmark::State& state) {
                                       decode(state, set, shape.heads, fast ? Arithmetic::kFast : Arithmetic::kExact);
                                     })
            ->ArgNames({"threads", "tokens"})
            ->ArgsProduct({{1, 2}, {4096, 32768}})
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace foldkv::bench
