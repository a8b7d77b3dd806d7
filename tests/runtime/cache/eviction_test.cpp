#include <algorithm>
#include <set>

#include "runtime/cache/estimate.h"
#include "runtime/cache/token_pages.h"
#include "tests/runtime/cache/eviction_scene.h"

namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kBudget = 60;

ToyShape shape_with_output() {
  ToyShape shape;
  shape.layers = 4;
  shape.query_heads = 6;
  shape.kv_heads = 2;
  shape.head_size = 8;
  shape.hidden = 24;
  return shape;
}

// The largest error of one more token's outputs against attention over the kept tokens at their own positions.
double decode_error(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                    const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens, int64_t token) {
  const std::vector<KeptByHead> kept = kept_everywhere(*sequence);
  const LayerOutputs outputs = run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
  double error = 0.0;
  for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
    const auto index = static_cast<size_t>(layer);
    const std::vector<double> expected = oracle_attention(host, layer, tokens.query[index], tokens.key[index],
                                                          tokens.value[index], token, 1, kept[index]);
    error = std::max(error, relative_error(outputs[index], expected));
  }
  return error;
}

int64_t held(const Sequence& sequence) {
  int64_t sum = 0;
  for (const KeptByHead& layer : kept_everywhere(sequence)) {
    for (const std::vector<int32_t>& head : layer) sum += std::ssize(head);
  }
  return sum;
}

TEST_CASE("every policy cuts a prompt to its budget, and attention afterwards is over what is kept") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(kPrompt + 3, 41);
  for (const std::string& name : evicting_policies()) {
    CAPTURE(name);
    const EvictionPolicy policy = small_policy(name, kBudget, 4);
    for (const std::string& backend : backend_names()) {
      CAPTURE(backend);
      const auto runtime = open_runtime({backend});
      const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
      (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
      CHECK(sequence->storage().token_count() == kPrompt);
      const int64_t heads = host.shape().layers * host.shape().kv_heads;
      const int64_t kept = held(*sequence);
      CHECK(kept <= kBudget * heads);
      // Layer groups lose less than a token a layer to rounding.
      CHECK(kept > kBudget * heads - heads);
      for (const KeptByHead& layer : kept_everywhere(*sequence)) {
        for (const std::vector<int32_t>& head : layer) {
          CHECK(std::is_sorted(head.begin(), head.end()));
          CHECK(std::set<int32_t>(head.begin(), head.end()).size() == head.size());
        }
      }
      if (policy.selection.reindexed) continue;
      CHECK(decode_error(runtime, host, sequence, tokens, kPrompt) < 1e-5);
    }
  }
}

// Scores of the prefix [KV heads][prefix] from the weights' definition: the window's mean of each query head, pooled over
// five with zeros beyond the ends, mean over the group.
std::vector<std::vector<double>> snapkv_scores(const ToyHost& host, int64_t layer, const ToyTokens& tokens,
                                               int64_t count, int64_t window) {
  const auto index = static_cast<size_t>(layer);
  const std::vector<double> weights = oracle_weights(host, layer, tokens.query[index], tokens.key[index], count);
  const int64_t prefix = count - window;
  const int64_t group = host.shape().query_heads / host.shape().kv_heads;
  std::vector<std::vector<double>> scores(static_cast<size_t>(host.shape().kv_heads),
                                          std::vector<double>(static_cast<size_t>(prefix)));
  for (int64_t head = 0; head < host.shape().query_heads; ++head) {
    std::vector<double> sums(static_cast<size_t>(prefix));
    for (int64_t row = prefix; row < count; ++row) {
      for (int64_t token = 0; token < prefix; ++token) {
        sums[static_cast<size_t>(token)] += weights[static_cast<size_t>((head * count + row) * count + token)];
      }
    }
    for (int64_t token = 0; token < prefix; ++token) {
      double pooled = 0.0;
      for (int64_t near = std::max<int64_t>(0, token - 2); near <= std::min(prefix - 1, token + 2); ++near) {
        pooled += sums[static_cast<size_t>(near)];
      }
      scores[static_cast<size_t>(head / group)][static_cast<size_t>(token)] += pooled;
    }
  }
  return scores;
}

// The best `count` of the scores, ties to the lower index, and all from the prefix on.
std::vector<int32_t> best_and_window(const std::vector<double>& scores, int64_t count, int64_t tokens) {
  std::vector<int32_t> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  for (int64_t token = std::ssize(scores); token < tokens; ++token) order.push_back(static_cast<int32_t>(token));
  std::sort(order.begin(), order.end());
  return order;
}

TEST_CASE("SnapKV keeps what its definition says, however the prompt was cut") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(kPrompt, 5);
  for (const int64_t chunk : {kPrompt, int64_t{64}, int64_t{7}, int64_t{1}}) {
    CAPTURE(chunk);
    const auto runtime = open_runtime({});
    const auto sequence = make_sequence(runtime, host, nullptr, evicting(small_policy("snapkv", kBudget, 4)));
    (void)feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt, chunk);
    for (int64_t layer = 0; layer < 4; ++layer) {
      const auto scores = snapkv_scores(host, layer, tokens, kPrompt, 8);
      const KeptByHead kept = kept_by_head(*sequence, layer);
      for (size_t head = 0; head < kept.size(); ++head) {
        CHECK(kept[head] == best_and_window(scores[head], kBudget - 8, kPrompt));
      }
    }
  }
}

TEST_CASE("H2O keeps the most attended tokens and recent ones; StreamingLLM sinks and recent ones") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(kPrompt, 6);
  const auto runtime = open_runtime({});
  EvictionPolicy h2o = small_policy("h2o", kBudget, 4);
  h2o.selection.recent_share = {};
  h2o.selection.recent_tokens = 20;
  const auto heavy = make_sequence(runtime, host, nullptr, evicting(h2o));
  (void)feed_in_chunks(runtime, host, heavy, tokens, 0, kPrompt, 33);
  for (int64_t layer = 0; layer < 4; ++layer) {
    const auto index = static_cast<size_t>(layer);
    const std::vector<double> weights = oracle_weights(host, layer, tokens.query[index], tokens.key[index], kPrompt);
    const KeptByHead kept = kept_by_head(*heavy, layer);
    for (int64_t head = 0; head < 2; ++head) {
      std::vector<double> sums(static_cast<size_t>(kPrompt - 20));
      for (int64_t query_head = head * 3; query_head < head * 3 + 3; ++query_head) {
        for (int64_t row = 0; row < kPrompt; ++row) {
          for (size_t token = 0; token < sums.size(); ++token) {
            sums[token] += weights[static_cast<size_t>((query_head * kPrompt + row) * kPrompt) + token];
          }
        }
      }
      CHECK(kept[static_cast<size_t>(head)] == best_and_window(sums, kBudget - 20, kPrompt));
    }
  }
  const auto stream = make_sequence(runtime, host, nullptr, evicting(small_policy("streaming-llm", 10, 4)));
  (void)run_step(runtime, host, {{stream, &tokens, 0, kPrompt, false, {}}});
  CHECK(kept_by_head(*stream, 2)[1] == std::vector<int32_t>{0, 1, 2, 3, 144, 145, 146, 147, 148, 149});
}

TEST_CASE("the same choice on both backends, on two threads, in a batch and in chunks") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(kPrompt, 7);
  const ToyTokens others = host.tokens(90, 8);
  for (const std::string& name : evicting_policies()) {
    CAPTURE(name);
    const SequencePolicy policy = evicting(small_policy(name, kBudget, 4));
    const auto lived = [&](const RuntimeChoice& choice, int64_t chunk, bool batch) {
      const auto runtime = open_runtime(choice);
      const auto sequence = make_sequence(runtime, host, nullptr, policy);
      if (batch) {
        const auto neighbour = make_sequence(runtime, host, nullptr, evicting(small_policy("tova", 20, 4)));
        (void)run_step(runtime, host, {{neighbour, &others, 0, 90, false, {}}, {sequence, &tokens, 0, kPrompt, false, {}}});
      } else {
        (void)feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt, chunk);
      }
      return kept_everywhere(*sequence);
    };
    const auto expected = lived({"cpu", 1}, kPrompt, false);
    CHECK(lived({"cpu", 2}, kPrompt, false) == expected);
    CHECK(lived({"cpu", 1}, kPrompt, true) == expected);
    CHECK(lived({"cpu", 1}, 37, false) == expected);
    CHECK(lived({"reference", 1}, kPrompt, false) == expected);
  }
}

TEST_CASE("evicted tokens free their bytes at once, as the estimate says") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(400, 9);
  for (const std::string& name : evicting_policies()) {
    CAPTURE(name);
    const auto runtime = open_runtime({});
    const SequencePolicy policy = evicting(small_policy(name, 48, 4));
    const auto sequence = make_sequence(runtime, host, nullptr, policy);
    EstimateQuestion question;
    question.policy = policy;
    question.prompt_tokens = 400;
    const auto estimate = estimate_sequence(*runtime, host.model(), nullptr, question);
    REQUIRE(estimate.ok());
    const int64_t before = runtime->arena().stats().ledger.total();
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 400, false, {}}});
    const int64_t bytes = sequence->ledger().total();
    CHECK(runtime->arena().stats().ledger.total() - before == bytes);
    // Heads that share a budget may each have a page more or less.
    const int64_t page = kExactPageTokens * 2 * 8 * 4 + 128;
    CHECK(std::abs(bytes - estimate->sequence_bytes) <= page * 8);
    const bool data_free = policy.eviction->policy.budget.heads == HeadAllocator::kUniform &&
                           (policy.eviction->policy.budget.layers == LayerAllocator::kUniform ||
                            policy.eviction->policy.budget.layers == LayerAllocator::kRipple);
    if (data_free) CHECK(bytes == estimate->sequence_bytes);
    CHECK(runtime->arena().stats().peak - before <= estimate->peak_bytes);
    const int64_t full = 4 * 2 * 16 * 400 * 4;
    // A fifth of the prompt is PyramidInfer's window, which stays whatever the budget is.
    if (name != "pyramidinfer") CHECK(bytes < full / 5);
  }
}

TEST_CASE("evicted pages leave the process's resident memory too") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(6000, 15);
  for (const std::string name : {"snapkv", "streaming-llm"}) {
    const auto runtime = open_runtime({});
    const auto sequence = make_sequence(runtime, host, nullptr, evicting(small_policy(name, 64, 4)));
    (void)feed_in_chunks(runtime, host, sequence, tokens, 0, 5000, 500);
    REQUIRE(sequence->ledger().total() < int64_t{1} << 17);
    const auto full = make_sequence(runtime, host, nullptr, SequencePolicy{});
    (void)run_step(runtime, host, {{full, &tokens, 0, 6000, false, {}}});
    const ArenaStats stats = runtime->arena().stats();
    CHECK(stats.resident <= stats.ledger.total() + stats.ledger.total() / 50 + (int64_t{1} << 20));
  }
}

TEST_CASE("generation: policies that evict there hold their budget, and attention stays right") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(200, 10);
  for (const std::string& name : evicting_policies()) {
    CAPTURE(name);
    EvictionPolicy policy = small_policy(name, 24, 4);
    if (policy.selection.interval == 0 || policy.selection.interval > 8) policy.selection.interval = 8;
    if (policy.selection.reindexed) continue;
    const auto runtime = open_runtime({});
    const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 40, false, {}}});
    const int64_t heads = 8;
    for (int64_t token = 40; token < 120; ++token) {
      CHECK(decode_error(runtime, host, sequence, tokens, token) < 1e-5);
      CHECK(held(*sequence) < (24 + policy.selection.interval) * heads);
      if (token > 60) CHECK(held(*sequence) > 24 * heads - heads - heads);
    }
  }
}

TEST_CASE("a step that is not committed leaves everything as it was") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(100, 11);
  for (const std::string name : {"h2o", "snapkv", "tova", "cake", "bellowskv-evict"}) {
    CAPTURE(name);
    EvictionPolicy policy = small_policy(name, 24, 4);
    policy.selection.interval = 4;
    const auto life = [&](bool disturbed) {
      const auto runtime = open_runtime({});
      const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
      (void)feed_in_chunks(runtime, host, sequence, tokens, 0, 40, 13);
      for (int64_t token = 40; token < 80; ++token) {
        if (disturbed) {
          const int64_t bytes = runtime->arena().stats().ledger.total();
          const auto step = Step::begin(runtime, {{sequence, 3, {}, false}}, {});
          REQUIRE(step.ok());
          GatheredInput input;
          gather_input(host, {{sequence, &tokens, 5, 3, false, {}}}, 0, {}, input);
          REQUIRE((*step)->attend(0, input.views).ok());
          const_cast<std::unique_ptr<Step>&>(*step).reset();
          CHECK(runtime->arena().stats().ledger.total() == bytes);
        }
        (void)run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
      }
      return kept_everywhere(*sequence);
    };
    CHECK(life(true) == life(false));
  }
}

TEST_CASE("a layer that failed and comes again is counted once") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(600, 12);
  const SequencePolicy policy = evicting(small_policy("h2o", 64, 4));
  const auto scores_after = [&](bool fails) {
    const auto runtime = open_runtime({});
    const auto sequence = make_sequence(runtime, host, nullptr, policy);
    auto step = Step::begin(runtime, {{sequence, 600, {}, true}}, {});
    REQUIRE(step.ok());
    for (int64_t layer = 0; layer < 4; ++layer) {
      GatheredInput input;
      gather_input(host, {{sequence, &tokens, 0, 600, true, {}}}, layer, {}, input);
      if (fails) {
        // Past the first block of rows, whose scores have been added by then.
        const MutableTensorView whole = input.views.output;
        input.views.output.row_count = 600;
        input.views.output.format = NumberFormat::kF16;
        std::vector<float> large = input.value;
        for (float& number : large) number *= 1e6f;
        const TensorView values = input.views.value;
        input.views.value.data = reinterpret_cast<const std::byte*>(large.data());
        CHECK_FALSE((*step)->attend(layer, input.views).ok());
        input.views.value = values;
        input.views.output = whole;
      }
      REQUIRE((*step)->attend(layer, input.views).ok());
    }
    REQUIRE((*step)->commit().ok());
    std::vector<std::vector<float>> scores;
    for (const ExactSet& set : sequence->storage().exact_sets()) {
      scores.emplace_back(600);
      REQUIRE(read_scores(runtime->backend(), set.tokens, 0, 600, scores.back().data()).ok());
    }
    return scores;
  };
  CHECK(scores_after(true) == scores_after(false));
}

TEST_CASE("prompts at the edges") {
  const ToyHost host(shape_with_output());
  const ToyTokens tokens = host.tokens(100, 13);
  const auto runtime = open_runtime({});
  for (const std::string& name : evicting_policies()) {
    CAPTURE(name);
    for (const int64_t count : {1, 2, 7, 8, 9, 24, 25}) {
      CAPTURE(count);
      EvictionPolicy policy = small_policy(name, 24, 4);
      const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
      (void)run_step(runtime, host, {{sequence, &tokens, 0, count, false, {}}});
      CHECK(held(*sequence) <= std::min<int64_t>(count, 24) * 8);
      if (count <= 24 && policy.budget.layers != LayerAllocator::kCosine) CHECK(held(*sequence) == count * 8);
    }
    for (const Ratio ratio : {Ratio{1, 1'000'000'000}, Ratio{1, 1}}) {
      EvictionPolicy policy = small_policy(name, 24, 4);
      policy.budget.tokens = 0;
      policy.budget.keep_ratio = ratio;
      const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
      (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
      if (ratio.denominator == 1 && policy.budget.layers != LayerAllocator::kCosine) CHECK(held(*sequence) == 800);
      CHECK(held(*sequence) >= 8);
    }
  }
}

}  // namespace
}  // namespace foldkv::test
