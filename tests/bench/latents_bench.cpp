// Writing a cache on the cpu backend: encoding a prompt's keys, the moments of calibration, and projections.

#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "tests/support/backends.h"
#include "tests/support/latent_pages.h"
#include "tests/support/layer_group.h"

namespace foldkv::bench {
namespace {

using test::MemoryBlock;
using test::Random;

constexpr int64_t kKeyWidth = 192;
constexpr int64_t kGroupLayers = 4;
constexpr int64_t kStackedWidth = kGroupLayers * kKeyWidth;

void count_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

std::unique_ptr<backend::Backend> open_cpu(const benchmark::State& state, const std::string& set) {
  return test::open_backend({"cpu", &backend::cpu_plugin(), set}, static_cast<int32_t>(state.range(0)));
}

void encode(benchmark::State& state, const std::string& set, int64_t tokens) {
  const auto device = open_cpu(state, set);
  Random random(1);
  const backend::LatentPlane plane = test::make_plane({{kKeyWidth, 4}}, 128);
  const backend::LatentLayout layout = test::make_layout(plane, plane, 0, 64);
  test::StackedPages exact({32, kKeyWidth, NumberFormat::kF16}, kGroupLayers, tokens, test::kZero);
  for (int64_t slot = 0; slot < tokens; ++slot) {
    exact.put(backend::Side::kKeys, slot, random.normals<float>(kStackedWidth).data());
  }
  const test::LatentPages latents(layout, tokens, test::kZero);
  const std::vector<float> basis = test::random_basis(random, kStackedWidth, kKeyWidth);
  const std::vector<uint16_t> mean = test::halves(random.normals<float>(kStackedWidth));
  const MemoryBlock workspace(device->latent_workspace({kStackedWidth, kKeyWidth, kKeyWidth, 0, tokens}), test::kZero);
  for (auto _ : state) {
    const Status status = device->encode({exact.rows(backend::Side::kKeys, 0, tokens), mean.data(), basis.data(),
                                          &layout, latents.pool().pages(), 0, workspace.data()});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  count_flops(state, 2.0 * kStackedWidth * kKeyWidth * static_cast<double>(tokens));
}

void moments(benchmark::State& state, const std::string& set) {
  constexpr int64_t kRows = 1024;
  const auto device = open_cpu(state, set);
  Random random(2);
  const std::vector<float> rows = random.normals<float>(kRows * kStackedWidth);
  std::vector<double> sum(kStackedWidth);
  std::vector<double> products(kStackedWidth * kStackedWidth);
  for (auto _ : state) {
    const Status status = device->moments({rows.data(), kRows, kStackedWidth, sum.data(), products.data()});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  // One triangle.
  count_flops(state, static_cast<double>(kRows) * kStackedWidth * (kStackedWidth + 1));
}

void product(benchmark::State& state, const std::string& set, backend::ProductShape shape) {
  const auto device = open_cpu(state, set);
  Random random(3);
  auto made = device->make_product(shape);
  if (!made.ok()) return state.SkipWithError(made.status().ToString().c_str());
  const std::vector<float> x = random.normals<float>(shape.rows * shape.inner);
  const test::TensorMemory weight(shape.weight_format, shape.columns, shape.inner, shape.inner, test::kZero,
                                  random.normals<float>(shape.columns * shape.inner));
  std::vector<float> y(static_cast<size_t>(shape.rows * shape.columns));
  const MemoryBlock workspace((*made)->workspace_bytes(), test::kZero);
  for (auto _ : state) {
    const Status status = (*made)->run({x.data(), weight.view(), {}, y.data(), workspace.data()});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  count_flops(state, 2.0 * static_cast<double>(shape.rows * shape.inner * shape.columns));
}

void register_bench(const std::string& name, void (*run)(benchmark::State&, const std::string&),
                    const std::string& set) {
  benchmark::RegisterBenchmark((name + "/" + set).c_str(), [run, set](benchmark::State& state) { run(state, set); })
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void register_product(const std::string& set, const backend::ProductShape& shape) {
  const std::string kind = std::string(name_of(shape.weight_format)) + (shape.deterministic ? "_deterministic" : "");
  const std::string name = "product_" + kind + "_" + std::to_string(shape.rows) + "_rows/" + set;
  benchmark::RegisterBenchmark(name.c_str(), [set, shape](benchmark::State& state) { product(state, set, shape); })
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

[[maybe_unused]] const bool registered = [] {
  for (const test::BackendChoice& choice : test::tested_choices()) {
    const std::string& set = choice.instruction_set;
    register_bench(
        "encode_64_tokens", [](benchmark::State& state, const std::string& name) { encode(state, name, 64); }, set);
    register_bench(
        "encode_4096_tokens", [](benchmark::State& state, const std::string& name) { encode(state, name, 4096); }, set);
    register_bench("moments_1024_rows_768_wide", moments, set);
    for (const int64_t rows : {1, 8, 16, 64, 1000}) {
      for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16}) {
        for (const bool deterministic : {false, true}) {
          if (format == NumberFormat::kF16 && !deterministic) continue;
          register_product(set, {rows, 576, 576, format, deterministic});
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace foldkv::bench
