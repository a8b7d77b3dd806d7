// The product against its own yardsticks, on a model of SmolLM2-135M's shape with random weights: what compression adds
// to a prefill, and a decoded token over 4,096 compressed tokens against the lab's full cache. Both sides of a ratio
// run in turns in one benchmark, so that a busy machine slows both.

#include <chrono>
#include <stdexcept>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "samples/lab/calibrate.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/full_attention.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv::bench {
namespace {

using foldkv_lab::Decoder;
using foldkv_lab::FoldkvAttention;
using foldkv_lab::Token;

foldkv_lab::ModelShape smollm2_shape() {
  foldkv_lab::ModelShape shape = foldkv_lab::test::small_shape("llama");
  shape.layer_count = 30;
  shape.hidden_size = 576;
  shape.feed_forward_size = 1536;
  shape.query_heads = 9;
  shape.kv_heads = 3;
  shape.head_size = 64;
  shape.vocabulary_size = 49152;
  shape.context_length = 8192;
  shape.inverse_frequencies = foldkv_lab::standard_inverse_frequencies(100000.0, 64);
  return shape;
}

std::vector<Token> some_tokens(int64_t count) {
  std::vector<Token> tokens;
  for (int64_t token = 0; token < count; ++token) tokens.push_back(static_cast<Token>(token * 7919 % 49152));
  return tokens;
}

// Whatever fails here is a fault of the benchmark itself.
template <typename Result>
auto value_of(Result result) {
  if (!result.ok()) throw std::runtime_error(std::string(result.status().message()));
  return std::move(*result);
}
void must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

// Made once: the model, a runtime on that many threads, and a profile of 4 layers at 4 bits.
struct World {
  explicit World(int thread_count)
      : model(foldkv_lab::test::random_model(smollm2_shape(), 1, 0.0)),
        threads(thread_count),
        host(value_of(foldkv_lab::FoldkvHost::create(model, "random", {}, threads))),
        profile(value_of(foldkv_lab::calibrate(*host, {{.tokens = some_tokens(1024)}}, {}, [](int64_t) {}))) {}

  std::unique_ptr<FoldkvAttention> attention(const foldkv::Profile* chosen) {
    return value_of(FoldkvAttention::create(*host, chosen, {}));
  }

  foldkv_lab::Model model;
  foldkv_lab::ThreadPool threads;
  std::unique_ptr<foldkv_lab::FoldkvHost> host;
  foldkv::Profile profile;
};

World& world(int thread_count) {
  static std::unique_ptr<World> worlds[3];
  auto& entry = worlds[thread_count];
  if (entry == nullptr) entry = std::make_unique<World>(thread_count);
  return *entry;
}

template <typename Body>
double seconds(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Counter "ratio": prefill with compression / the same without. Goal: at most 1.3.
void prefill(benchmark::State& state) {
  World& fixture = world(static_cast<int>(state.range(0)));
  const std::vector<Token> tokens = some_tokens(state.range(1));
  double exact = 0.0;
  double compressed = 0.0;
  std::vector<float> logits;
  for (auto _ : state) {
    for (const foldkv::Profile* profile : {static_cast<const foldkv::Profile*>(nullptr), &std::as_const(fixture.profile)}) {
      const auto attention = fixture.attention(profile);
      Decoder decoder(fixture.model, *attention, fixture.threads);
      (profile == nullptr ? exact : compressed) += seconds([&] { must(decoder.feed(tokens, 1, &logits)); });
    }
  }
  state.counters["exact_s"] = exact / static_cast<double>(state.iterations());
  state.counters["compressed_s"] = compressed / static_cast<double>(state.iterations());
  state.counters["ratio"] = compressed / exact;
}
BENCHMARK(prefill)
    ->ArgNames({"threads", "tokens"})
    ->Args({2, 128})
    ->Args({2, 1024})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Counter "ratio": one token over compressed tokens / the same over the lab's full 16-bit cache. Goal: at most 8.
void decode(benchmark::State& state) {
  World& fixture = world(static_cast<int>(state.range(0)));
  const std::vector<Token> prompt = some_tokens(state.range(1));
  const std::vector<Token> next = some_tokens(1);
  foldkv_lab::FullAttention full_attention(fixture.model, foldkv_lab::CacheFormat::kF16, state.range(1) + 4096,
                                           fixture.threads);
  const auto folded_attention = fixture.attention(&fixture.profile);
  Decoder full_decoder(fixture.model, full_attention, fixture.threads);
  Decoder folded_decoder(fixture.model, *folded_attention, fixture.threads);
  std::vector<float> logits;
  must(full_decoder.feed(prompt, 1, &logits));
  must(folded_decoder.feed(prompt, 1, &logits));
  double full = 0.0;
  double folded = 0.0;
  for (auto _ : state) {
    full += seconds([&] { must(full_decoder.feed(next, 1, &logits)); });
    folded += seconds([&] { must(folded_decoder.feed(next, 1, &logits)); });
  }
  state.counters["full_ms"] = 1e3 * full / static_cast<double>(state.iterations());
  state.counters["compressed_ms"] = 1e3 * folded / static_cast<double>(state.iterations());
  state.counters["ratio"] = folded / full;
}
BENCHMARK(decode)
    ->ArgNames({"threads", "tokens"})
    ->Args({2, 128})
    ->Args({2, 4096})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace foldkv::bench
