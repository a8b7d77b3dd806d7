// 5. Several sequences: one step for all.
//
// A server feeds many conversations at once: a long prompt here, one generated token there. Each gets what it would get
// alone, bit for bit, whatever else is in the batch, on any number of threads, and however its prompt was cut.
// This program uses the C++ wrapper: handles release themselves, results carry a value or the error.
#include "foldkv/foldkv.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "course.h"

namespace {

constexpr int32_t kLayers = 3, kQueryHeads = 6, kKvHeads = 2, kHeadSize = 16;

template <class T>
T value_of(foldkv::Result<T> result) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message);
  CHECK(result.ok());
  return *std::move(result);
}

foldkv::Model make_model() {
  std::vector<double> frequencies;
  for (int pair = 0; pair < kHeadSize / 2; ++pair) frequencies.push_back(std::pow(10000.0, -2.0 * pair / kHeadSize));
  auto rotation = foldkv::init<foldkv_rotation>();
  rotation.pairing = FOLDKV_PAIRING_INTERLEAVED;
  rotation.inverse_frequencies = frequencies.data();
  rotation.frequency_count = kHeadSize / 2;
  auto layer = foldkv::init<foldkv_layer>();
  layer.query_heads = kQueryHeads;
  layer.kv_heads = kKvHeads;
  layer.head_size = kHeadSize;
  layer.rotation = &rotation;
  const std::vector<foldkv_layer> layers(kLayers, layer);
  return value_of(foldkv::Model::create({.layer_count = kLayers, .layers = layers.data()}));
}

// The queries, keys and values of one conversation, and the outputs that it got.
struct Conversation {
  Conversation(uint64_t seed, int64_t token_count) : tokens(token_count), output(kLayers) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (auto* numbers : {&query, &key, &value}) {
        numbers->emplace_back(static_cast<size_t>(tokens * width(*numbers)));
        fill_with_noise(numbers->back().data(), tokens * width(*numbers), seed++);
      }
    }
  }
  [[nodiscard]] int32_t width(const std::vector<std::vector<float>>& of) const {
    return (&of == &query ? kQueryHeads : kKvHeads) * kHeadSize;
  }

  int64_t tokens;
  std::vector<std::vector<float>> query, key, value, output;  // one of each layer, rows of tokens
};

// Who takes part in a step with how many tokens.
struct Part {
  Conversation* conversation;
  foldkv::Sequence* sequence;
  int64_t first, count;
  uint32_t flags = 0;
};

void run_step(foldkv::Runtime& runtime, const std::vector<Part>& parts) {
  std::vector<foldkv_feed> feeds;
  int64_t rows = 0;
  for (const Part& part : parts) {
    feeds.push_back(foldkv::feed(*part.sequence, part.count, part.flags));
    rows += part.count;
  }
  foldkv::Step step = value_of(foldkv::Step::begin(runtime, feeds));
  for (size_t layer = 0; layer < kLayers; ++layer) {
    // The rows of all feeds, one feed after the other.
    std::vector<float> query, key, value, output(static_cast<size_t>(rows * kQueryHeads * kHeadSize));
    for (const Part& part : parts) {
      const Conversation& from = *part.conversation;
      const auto append = [&](std::vector<float>& to, const std::vector<std::vector<float>>& numbers) {
        const auto begin = numbers[layer].begin() + part.first * from.width(numbers);
        to.insert(to.end(), begin, begin + part.count * from.width(numbers));
      };
      append(query, from.query);
      append(key, from.key);
      append(value, from.value);
    }
    auto attend = foldkv::init<foldkv_attend>();
    attend.query = foldkv::tensor(query.data(), {rows, kQueryHeads, kHeadSize});
    attend.key = foldkv::tensor(key.data(), {rows, kKvHeads, kHeadSize});
    attend.value = foldkv::tensor(value.data(), {rows, kKvHeads, kHeadSize});
    attend.output = foldkv::tensor(output.data(), {rows, kQueryHeads, kHeadSize});
    CHECK(step.attend(static_cast<int32_t>(layer), attend).ok());
    auto row = output.begin();
    for (const Part& part : parts) {
      auto& to = part.conversation->output[layer];
      const auto end = row + part.count * kQueryHeads * kHeadSize;
      to.insert(to.end(), row, end);
      row = end;
    }
  }
  CHECK(step.commit().ok());
}

foldkv::Runtime new_runtime(int32_t threads) {
  return value_of(foldkv::Runtime::create({.budget_bytes = 32u << 20, .threads = threads}));
}

foldkv::Sequence make_sequence(foldkv::Runtime& runtime, const foldkv::Model& model) {
  return value_of(foldkv::Sequence::create(runtime, model, nullptr));
}

}  // namespace

int main() {
  const foldkv::Model model = make_model();
  Conversation long_one(100, 90), short_one(200, 12), late_one(300, 40);

  // Together, on two threads: the long one starts; the short one joins; the late one's prompt comes with their tokens.
  foldkv::Runtime runtime = new_runtime(2);
  auto a = make_sequence(runtime, model), b = make_sequence(runtime, model), c = make_sequence(runtime, model);
  run_step(runtime, {{&long_one, &a, 0, 88}});
  run_step(runtime, {{&long_one, &a, 88, 1}, {&short_one, &b, 0, 11}});
  run_step(runtime, {{&long_one, &a, 89, 1}, {&short_one, &b, 11, 1}, {&late_one, &c, 0, 40}});
  std::printf("together: %lld sequences hold %llu bytes\n",
              static_cast<long long>(value_of(runtime.stats()).sequence_count),
              static_cast<unsigned long long>(value_of(runtime.stats()).used_bytes));
  CHECK(value_of(a.stats()).tokens == 90 && value_of(b.stats()).tokens == 12 && value_of(c.stats()).tokens == 40);

  // Alone, on one thread, in other pieces.
  foldkv::Runtime lone_runtime = new_runtime(1);
  for (Conversation* conversation : {&long_one, &short_one, &late_one}) {
    Conversation again = *conversation;
    for (auto& output : again.output) output.clear();
    auto sequence = make_sequence(lone_runtime, model);
    for (int64_t first = 0; first < again.tokens; first += 7) {
      const int64_t count = first + 7 < again.tokens ? 7 : again.tokens - first;
      const uint32_t flags = first + count < again.tokens ? static_cast<uint32_t>(FOLDKV_FEED_CONTINUES) : 0;
      run_step(lone_runtime, {{&again, &sequence, first, count, flags}});
    }
    CHECK(again.output == conversation->output);
    std::printf("%lld tokens alone: the same outputs, bit for bit\n", static_cast<long long>(again.tokens));
  }
  return 0;
}
