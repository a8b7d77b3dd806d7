// What sharing and saving cost: a sequence of 8,192 tokens in six layers of SmolLM2's shape, under int4. Saving and
// restoring stand beside a plain copy of as many bytes, made in turns in the same run.

#include <malloc.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "benchmark/benchmark.h"
#include "foldkv/foldkv.hpp"
#include "tests/support/random.h"

namespace foldkv::bench {
namespace {

constexpr int32_t kLayers = 6, kQueryHeads = 9, kKvHeads = 3, kHeadSize = 64;
constexpr int64_t kPrompt = 8192, kChunk = 512;

// Whatever fails here is a fault of the benchmark itself.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}
void must(const Outcome& outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
}

Model make_model() {
  std::vector<double> frequencies;
  for (int pair = 0; pair < kHeadSize / 2; ++pair) frequencies.push_back(1.0 / (1.0 + pair));
  auto rotation = init<foldkv_rotation>();
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = frequencies.data();
  rotation.frequency_count = kHeadSize / 2;
  auto layer = init<foldkv_layer>();
  layer.query_heads = kQueryHeads;
  layer.kv_heads = kKvHeads;
  layer.head_size = kHeadSize;
  layer.rotation = &rotation;
  const std::vector<foldkv_layer> layers(kLayers, layer);
  return value_of(Model::create({.layer_count = kLayers, .layers = layers.data()}));
}

Profile int4(const Model& model) {
  auto options = init<foldkv_codec_options>();
  options.codec = FOLDKV_CODEC_INTEGER;
  options.bits = 4;
  return value_of(Profile::from_codec(model, options));
}

void feed_noise(Runtime& runtime, Sequence& sequence, int64_t count, uint32_t flags) {
  test::Random random(static_cast<uint64_t>(count));
  const auto query = random.normals(count * kQueryHeads * kHeadSize);
  const auto key = random.normals(count * kKvHeads * kHeadSize), value = random.normals(count * kKvHeads * kHeadSize);
  std::vector<float> output(query.size());
  const std::vector<foldkv_feed> feeds = {feed(sequence, count, flags)};
  Step step = value_of(Step::begin(runtime, feeds));
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    auto attend = init<foldkv_attend>();
    attend.query = tensor(query.data(), {count, kQueryHeads, kHeadSize});
    attend.key = tensor(key.data(), {count, kKvHeads, kHeadSize});
    attend.value = tensor(value.data(), {count, kKvHeads, kHeadSize});
    attend.output = tensor(output.data(), {count, kQueryHeads, kHeadSize});
    must(step.attend(layer, attend));
  }
  must(step.commit());
}

struct World {
  Runtime runtime =
      value_of(Runtime::create({.budget_bytes = uint64_t{1} << 30, .threads = 0, .spill_directory = "/tmp"}));
  Model model = make_model();
  Profile profile = int4(model);
  Sequence prompt = fed(kPrompt);

  Sequence fed(int64_t tokens) {
    Sequence sequence = value_of(Sequence::create(runtime, model, &profile));
    for (int64_t done = 0; done < tokens; done += kChunk) {
      feed_noise(runtime, sequence, kChunk, done + kChunk < tokens ? static_cast<uint32_t>(FOLDKV_FEED_CONTINUES) : 0);
    }
    return sequence;
  }
  [[nodiscard]] double used() const { return static_cast<double>(value_of(runtime.stats()).used_bytes); }
};

World& world() {
  static World made;
  return made;
}

double seconds_of(auto&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// 1,000 forks: bytes of the budget beyond the prompt's, and of the host's heap, in percent of the prompt's.
void forks(benchmark::State& state) {
  World& w = world();
  const auto one = static_cast<double>(value_of(w.prompt.stats()).bytes);
  double budget = 0.0, heap = 0.0;
  for (auto _ : state) {
    const double used = w.used();
    const auto held = static_cast<double>(mallinfo2().uordblks);
    std::vector<Sequence> family;
    for (int fork = 0; fork < 1000; ++fork) family.push_back(value_of(w.prompt.fork()));
    budget = w.used() - used;
    heap = static_cast<double>(mallinfo2().uordblks) - held;
  }
  state.counters["budget_percent"] = 100.0 * budget / one;
  state.counters["heap_percent_each"] = 100.0 * heap / 1000.0 / one;
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(forks)->Unit(benchmark::kMillisecond);

// Eight tokens cut off again, at two lengths.
void truncation(benchmark::State& state) {
  World& w = world();
  Sequence sequence = w.fed(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    feed_noise(w.runtime, sequence, 8, FOLDKV_FEED_CONTINUES);
    state.ResumeTiming();
    must(sequence.truncate(state.range(0)));
  }
}
BENCHMARK(truncation)->Arg(1024)->Arg(8192)->Unit(benchmark::kMicrosecond)->Iterations(20);

// Time over that of a copy of the pages' bytes.
template <typename Body>
void against_copy(benchmark::State& state, Body body) {
  const auto bytes = static_cast<size_t>(value_of(world().prompt.stats()).bytes);
  const std::vector<std::byte> source(bytes, std::byte{1});
  double spent = 0.0, copied = 0.0;
  for (auto _ : state) {
    std::vector<std::byte> target(bytes);
    copied += seconds_of([&] { std::memcpy(target.data(), source.data(), bytes); });
    const double time = seconds_of(body);
    state.SetIterationTime(time);
    spent += time;
  }
  state.counters["times_copy"] = spent / copied;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void saving(benchmark::State& state) {
  const int32_t compression = static_cast<int32_t>(state.range(0));
  size_t size = 0;
  const auto write = [](void* context, const void*, size_t bytes) {
    *static_cast<size_t*>(context) += bytes;
    return 0;
  };
  auto options = init<foldkv_save_options>();
  options.compression = compression;
  const foldkv_sequence* one[] = {world().prompt.get()};
  against_copy(state, [&] {
    size = 0;
    if (foldkv_sequences_save(one, 1, &options, write, &size, nullptr) != FOLDKV_OK) throw std::runtime_error("save");
  });
  state.counters["file_percent"] =
      100.0 * static_cast<double>(size) / static_cast<double>(value_of(world().prompt.stats()).bytes);
}
BENCHMARK(saving)->Arg(0)->Arg(1)->Arg(3)->UseManualTime()->Unit(benchmark::kMillisecond);

void restoring(benchmark::State& state) {
  World& w = world();
  const std::vector<std::byte> bytes = value_of(w.prompt.save({.compression = static_cast<int32_t>(state.range(0))}));
  against_copy(state, [&] { (void)value_of(Sequence::restore(w.runtime, w.model, &w.profile, bytes)); });
}
BENCHMARK(restoring)->Arg(0)->Arg(3)->UseManualTime()->Unit(benchmark::kMillisecond);

void spilling(benchmark::State& state) {
  World& w = world();
  Sequence sequence = w.fed(kPrompt);
  against_copy(state, [&] {
    must(sequence.spill());
    (void)value_of(sequence.positions());
  });
}
BENCHMARK(spilling)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foldkv::bench
