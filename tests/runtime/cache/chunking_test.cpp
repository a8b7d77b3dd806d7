#include "doctest/doctest.h"
#include "tests/runtime/cache/toy_host.h"

// Architecture decision 10: results depend neither on how a prompt was cut, nor on what else is in the batch, nor on
// the number of threads. From queries, keys and values that holds bit for bit.
namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 600;
constexpr int64_t kGenerated = 6;

ToyShape shape_with_hidden() {
  ToyShape shape;
  shape.layers = 3;
  shape.query_heads = 6;
  shape.kv_heads = 2;
  shape.head_size = 16;
  shape.hidden = 40;
  shape.window = 100;
  return shape;
}

struct Life {
  LayerOutputs prompt;
  std::vector<LayerOutputs> generated;

  bool operator==(const Life&) const = default;
};

SequencePolicy policy(NumberFormat format = NumberFormat::kF16) {
  SequencePolicy policy;
  policy.format = format;
  policy.fold_tokens = 3;
  return policy;
}

Life live(const std::shared_ptr<Runtime>& runtime, const ToyHost& host, const std::shared_ptr<const Profile>& profile,
          int64_t chunk, const StepRules& rules = {}, NumberFormat format = NumberFormat::kF16) {
  const ToyTokens tokens = host.tokens(kPrompt + kGenerated, 31);
  const auto sequence = make_sequence(runtime, host, profile, policy(format));
  Life life;
  life.prompt = feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt, chunk, rules);
  for (int64_t token = kPrompt; token < kPrompt + kGenerated; ++token) {
    life.generated.push_back(run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}}, rules));
  }
  return life;
}

TEST_CASE("whole, in chunks of 1, 7 and 256, on 1 to 3 threads: the same bits, exact and compressed") {
  const ToyHost host(shape_with_hidden());
  const auto profile = calibrate(open_runtime({"cpu", 1}), host, {2, 4, 0, 32, 2});
  for (const std::shared_ptr<const Profile>& chosen : {std::shared_ptr<const Profile>(), profile}) {
    const Life whole = live(open_runtime({"cpu", 1}), host, chosen, kPrompt);
    for (const auto& [threads, chunk] : {std::pair{1, 1}, {2, 7}, {1, 256}, {3, 256}, {2, 600}}) {
      CHECK(live(open_runtime({"cpu", threads}), host, chosen, chunk) == whole);
    }
  }
}

TEST_CASE("the reference backend likewise") {
  ToyShape shape;
  shape.layers = 2;
  const ToyHost host(shape);
  const auto runtime = open_runtime({"reference"});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 0});
  const Life whole = live(runtime, host, profile, kPrompt);
  CHECK(live(runtime, host, profile, 7) == whole);
  CHECK(live(runtime, host, profile, 256) == whole);
}

TEST_CASE("from hidden states: the last bits may differ, in deterministic mode none do") {
  const ToyHost host(shape_with_hidden());
  const StepRules rules{true, false};
  // Exact caches in f32: on a rounding edge of a code or a half a last bit would turn into a whole step.
  const Life whole = live(open_runtime({"cpu", 2}), host, nullptr, kPrompt, rules, NumberFormat::kF32);
  const Life pieces = live(open_runtime({"cpu", 1}), host, nullptr, 7, rules, NumberFormat::kF32);
  for (size_t layer = 0; layer < whole.prompt.size(); ++layer) {
    const std::vector<double> expected(whole.prompt[layer].begin(), whole.prompt[layer].end());
    CHECK(relative_error(pieces.prompt[layer], expected) < 1e-5);
  }
  const auto profile = calibrate(open_runtime({"cpu", 1}), host, {2, 4, 0, 32, 2});
  const Life fixed = live(open_runtime({"cpu", 2, true}), host, profile, kPrompt, rules);
  CHECK(live(open_runtime({"cpu", 1, true}), host, profile, 7, rules) == fixed);
  CHECK(live(open_runtime({"cpu", 2, true}), host, profile, 1, rules) == fixed);
}

TEST_CASE("beside other sequences of other lengths and kinds: the same bits as alone") {
  const ToyHost host(shape_with_hidden());
  const auto runtime = open_runtime({"cpu", 2});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 32, 2});
  const ToyTokens tokens = host.tokens(kPrompt + kGenerated, 31);
  const ToyTokens others = host.tokens(900, 77);
  const Life alone = live(runtime, host, profile, kPrompt);

  const auto sequence = make_sequence(runtime, host, profile, policy());
  const auto longer = make_sequence(runtime, host, profile, policy());
  const auto exact = make_sequence(runtime, host, nullptr, policy());
  (void)run_step(runtime, host, {{longer, &others, 0, 801, false, {}}});
  const LayerOutputs prompt = run_step(runtime, host, {{exact, &others, 0, 13, false, {}},
                                                       {sequence, &tokens, 0, kPrompt, false, {}},
                                                       {longer, &others, 801, 1, false, {}}});
  const auto slice = [&](const LayerOutputs& outputs, int64_t first, int64_t count) {
    LayerOutputs rows;
    const int64_t width = host.shape().query_width();
    for (const auto& layer : outputs) {
      rows.emplace_back(layer.begin() + first * width, layer.begin() + (first + count) * width);
    }
    return rows;
  };
  CHECK(slice(prompt, 13, kPrompt) == alone.prompt);
  for (int64_t token = 0; token < kGenerated; ++token) {
    const LayerOutputs outputs = run_step(runtime, host, {{longer, &others, 802 + token, 1, false, {}},
                                                          {exact, &others, 13 + 3 * token, 3, false, {}},
                                                          {sequence, &tokens, kPrompt + token, 1, false, {}}});
    CHECK(slice(outputs, 4, 1) == alone.generated[static_cast<size_t>(token)]);
  }
}

}  // namespace
}  // namespace foldkv::test
