// Dense reading of latents on the cpu backend: the rebuild of one head of a tile against what the machine's registers
// can do, and one decoded token of one layer at the shapes of well-known models, in both arithmetics. Four layers share
// a latent of a layer's key width, 4 bits a coordinate. Counters: ns for each cached token, and how many times fewer
// bytes are read than a 16-bit cache has.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cpu/integer_tile.h"
#include "backends/cpu/kernels.h"
#include "benchmark/benchmark.h"
#include "tests/bench/dot_peak.h"
#include "tests/support/backends.h"
#include "tests/support/latent_pages.h"
#include "tests/support/layer_group.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::bench {
namespace {

using backend::Arithmetic;
using test::MemoryBlock;
using test::Random;

struct Shape {
  const char* name;
  int64_t query_heads;
  int64_t kv_heads;
  int64_t head_size;

  [[nodiscard]] int64_t key_width() const { return kv_heads * head_size; }
};
constexpr Shape kShapes[] = {
    {"smollm2-135m", 9, 3, 64}, {"qwen2.5-0.5b", 14, 2, 64}, {"llama-3.2-1b", 32, 8, 64}, {"llama-3.1-8b", 32, 8, 128}};
constexpr int64_t kGroupLayers = 4;

std::vector<double> frequencies(int64_t pairs) {
  std::vector<double> result;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    result.push_back(std::pow(500000.0, -static_cast<double>(pair) / static_cast<double>(pairs)));
  }
  return result;
}

std::vector<int32_t> first_positions(int64_t count) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// One layer of a group with so many latents and one row of queries.
class Layer {
 public:
  Layer(backend::Backend& device, const Shape& shape, int64_t tokens)
      : shape_(shape),
        frequencies_(frequencies(shape.head_size / 2)),
        rotation_(device, {backend::Pairing::kHalfSplit, shape.head_size / 2, 1.0, frequencies_.data(), nullptr}),
        layout_(make_layout(shape)),
        latents_(layout_, tokens, test::kZero),
        positions_(first_positions(tokens), layout_.page_tokens, test::kZero),
        query_position_(static_cast<int32_t>(tokens)),
        basis_(test::random_basis(random_, kGroupLayers * shape.key_width(), shape.key_width())),
        fast_basis_(std::max<int64_t>(64, device.fast_basis_bytes(kGroupLayers * shape.key_width(), shape.key_width())),
                    test::kZero),
        mean_(test::halves(random_.normals<float>(kGroupLayers * shape.key_width()))),
        queries_(random_.normals<float>(shape.query_heads * shape.head_size)),
        context_(queries_.size()),
        workspace_(device.attend_workspace({shape.query_heads, shape.kv_heads, shape.head_size, shape.key_width(),
                                            shape.key_width(), 0, 1, 1, tokens}),
                   test::kZero) {
    latents_.randomize(random_, 0, tokens, 1.0);
    if (!device
             .prepare_fast_basis(basis_.data(), kGroupLayers * shape.key_width(), shape.key_width(), fast_basis_.data())
             .ok()) {
      std::abort();
    }
    sequence_ = {.latent = {latents_.pool().pages(), tokens, mean_.data(), mean_.data(), nullptr},
                 .latent_positions = positions_.region(),
                 .row_count = 1,
                 .query_positions = &query_position_};
  }

  void attend(backend::Backend& device, Arithmetic arithmetic) {
    const backend::AttendRequest request = {
        .rules = {shape_.query_heads, shape_.kv_heads, shape_.head_size,
                  1.0 / std::sqrt(static_cast<double>(shape_.head_size)), 0.0, 0, rotation_.get()},
        .exact_layout = {32, shape_.key_width(), NumberFormat::kF16},
        .latent = {&layout_, basis_.data(), basis_.data(), 0, fast_basis_.data()},
        .arithmetic = arithmetic,
        .sequences = {&sequence_, 1},
        .queries = queries_.data(),
        .context = context_.data(),
        .workspace = workspace_.data()};
    if (!device.attend(request).ok()) std::abort();
    benchmark::DoNotOptimize(context_.data());
  }

 private:
  static backend::LatentLayout make_layout(const Shape& shape) {
    const backend::LatentPlane plane = test::make_plane({{shape.key_width(), 4}}, 128);
    return test::make_layout(plane, plane, 0, 64);
  }

  Random random_{1};
  Shape shape_;
  std::vector<double> frequencies_;
  test::PreparedRotation rotation_;
  backend::LatentLayout layout_;
  test::LatentPages latents_;
  test::PositionPages positions_;
  int32_t query_position_;
  std::vector<float> basis_;
  MemoryBlock fast_basis_;
  std::vector<uint16_t> mean_;
  std::vector<float> queries_;
  std::vector<float> context_;
  MemoryBlock workspace_;
  backend::AttendSequence sequence_;
};

// Threads, tokens.
void decode(benchmark::State& state, const std::string& set, const Shape& shape, Arithmetic arithmetic) {
  const auto device = test::open_backend({"cpu", &backend::cpu_plugin(), set}, static_cast<int32_t>(state.range(0)));
  const int64_t tokens = state.range(1);
  Layer layer(*device, shape, tokens);
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
    for (const Shape& shape : kShapes) {
      for (const bool fast : {false, true}) {
        if (fast && !has_integers) continue;
        const std::string name = std::string("decode/") + shape.name + "/" + set + (fast ? "/fast" : "/exact");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [set, shape, fast](benchmark::State& state) {
                                       decode(state, set, shape, fast ? Arithmetic::kFast : Arithmetic::kExact);
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
