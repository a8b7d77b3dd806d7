#include "runtime/policy/policy_budgets.h"

#include <cmath>
#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/named_policies.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using Counts = std::vector<int64_t>;

PolicyCounts counts_of(const char* name, int64_t tokens) {
  return count_policy_tokens(find_policy(name).value(), tokens);
}

TEST_CASE("a policy's counts") {
  CHECK(counts_of("full", 100) == PolicyCounts{100, 0, 0, 0, 100});
  CHECK(counts_of("snapkv", 5000) == PolicyCounts{5000, 32, 0, 32, 2048});
  CHECK(counts_of("snapkv", 20) == PolicyCounts{20, 20, 0, 20, 20});
  CHECK(counts_of("streaming-llm", 1000) == PolicyCounts{1000, 0, 4, 0, 516});
  CHECK(counts_of("h2o", 1005) == PolicyCounts{1005, 0, 0, 100, 201});
  CHECK(counts_of("bellowskv-evict", 100) == PolicyCounts{100, 64, 4, 64, 84});
  CHECK(counts_of("bellowskv-evict", 67) == PolicyCounts{67, 64, 4, 63, 67});
  CHECK(counts_of("pyramidinfer", 1000) == PolicyCounts{1000, 200, 4, 200, 1000});
  CHECK(counts_of("full", 0) == PolicyCounts{});
  EvictionPolicy policy = find_policy("snapkv").value();
  policy.budget.tokens = 0;
  policy.budget.keep_ratio = {1, 100};
  CHECK(count_policy_tokens(policy, 1000).budget == 32);  // not below what is kept always
}

EvictionPolicy policy_with(LayerAllocator layers, bool author_rounding) {
  EvictionPolicy policy = find_policy("snapkv").value();
  policy.selection.window_tokens = 8;
  policy.budget.tokens = 108;
  policy.budget.layers = layers;
  policy.budget.author_rounding = author_rounding;
  return policy;
}

Counts budgets(LayerAllocator layers, bool author_rounding, std::vector<double> numbers) {
  const EvictionPolicy policy = policy_with(layers, author_rounding);
  return layer_budgets(policy, count_policy_tokens(policy, 1008), 4, numbers).value();
}

TEST_CASE("each allocator, exactly and as its authors round") {
  using L = LayerAllocator;
  CHECK(budgets(L::kUniform, false, {}) == Counts{108, 108, 108, 108});
  // 195, 131.67, 68.33, 5 beside the window; steps of 63.
  CHECK(budgets(L::kPyramid, false, {}) == Counts{203, 140, 76, 13});
  CHECK(budgets(L::kPyramid, true, {}) == Counts{203, 140, 77, 14});
  CHECK(budgets(L::kCake, false, {1, 2, 3, 1}) == Counts{65, 122, 180, 65});
  CHECK(budgets(L::kCake, true, {1, 2, 3, 1}) == Counts{66, 122, 179, 65});
  CHECK(budgets(L::kLava, false, {1, 2, 3, 1}) == Counts{65, 122, 180, 65});
  CHECK(budgets(L::kLava, true, {1, 2, 3, 1}) == Counts{65, 122, 179, 65});
  CHECK(budgets(L::kDynamic, false, {4, 8, 12, 4}) == Counts{65, 122, 180, 65});
  CHECK(budgets(L::kCustom, false, {1, 2, 3, 1}) == Counts{62, 123, 185, 62});
  CHECK(budgets(L::kCustom, false, {0, 1, 0, 0}) == Counts{8, 408, 8, 8});
  CHECK(budgets(L::kImportance, false, {1, 2, 3, 4}) == Counts{62, 93, 123, 154});
  CHECK(budgets(L::kImportance, true, {1, 2, 3, 4}) == Counts{62, 93, 123, 154});
  CHECK(budgets(L::kRipple, false, {0, 1, 1, 0}) == Counts{86, 130, 130, 86});
  // A quarter of 108 is the floor of layer 1.
  CHECK(budgets(L::kEpisode, false, {0, 1, 0, 0}) == Counts{135, 27, 135, 135});
  CHECK(budgets(L::kEpisode, true, {0, 1, 0, 0}) == Counts{144, 27, 144, 144});
}

TEST_CASE("RippleKV leaves every layer a token beside its window") {
  EvictionPolicy policy = policy_with(LayerAllocator::kRipple, false);
  policy.budget.tokens = 9;
  const std::vector<double> sensitivities = {0, 1, 1, 0};
  CHECK(layer_budgets(policy, count_policy_tokens(policy, 1008), 4, sensitivities).value() == Counts{9, 9, 9, 9});
}

TEST_CASE("a schedule without a budget is the schedule, with one it is shares") {
  EvictionPolicy policy = find_policy("pyramidinfer").value();
  policy.budget.decay = 0.5;
  CHECK(layer_budgets(policy, count_policy_tokens(policy, 1000), 4, {}).value() == Counts{1000, 926, 694, 397});
  policy.budget.tokens = 500;
  const Counts counts = layer_budgets(policy, count_policy_tokens(policy, 1000), 4, {}).value();
  CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 2000);
  CHECK(counts[0] > counts[3]);
}

TEST_CASE("sums are the budget, layers keep what is kept always and no more than there is") {
  test::Random random(19);
  for (const NamedPolicy& entry : named_policies()) {
    if (entry.policy.budget.layers == LayerAllocator::kCosine) continue;
    for (int round = 0; round < 100; ++round) {
      EvictionPolicy policy = entry.policy;
      const PolicyCounts counts = count_policy_tokens(policy, random.between(1, 6000));
      const int64_t layers = random.between(1, 40);
      std::vector<double> numbers(static_cast<size_t>(layers));
      for (double& number : numbers) number = static_cast<double>(random.between(1, 1000));
      const Counts exact = layer_budgets(policy, counts, layers, numbers).value();
      REQUIRE(std::ssize(exact) == layers);
      CAPTURE(policy.name);
      CHECK(std::accumulate(exact.begin(), exact.end(), int64_t{0}) == layers * counts.budget);
      for (const int64_t tokens : exact) REQUIRE((tokens >= counts.kept_always() && tokens <= counts.tokens));
      policy.budget.author_rounding = true;
      const Counts author = layer_budgets(policy, counts, layers, numbers).value();
      for (const int64_t tokens : author) {
        REQUIRE((tokens >= counts.kept_always() && tokens <= counts.tokens));
      }
    }
  }
}

TEST_CASE("heads of a layer share its budget, or have one each") {
  ScoreTable scores(2, 6);
  scores.scores = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0};
  const std::vector<uint8_t> always = {0, 0, 0, 0, 0, 1};
  EvictionPolicy policy = find_policy("snapkv").value();
  CHECK(head_budgets(policy, scores, always, 3).value() == Counts{3, 3});
  CHECK(head_budgets(policy, scores, always, 9).value() == Counts{5, 5});
  policy.budget.heads = HeadAllocator::kAda;
  policy.budget.head_floor_share = 0.7;
  CHECK(head_budgets(policy, scores, always, 3).value() == Counts{4, 2});
  CHECK(head_budgets(policy, scores, {}, 3).value() == Counts{4, 2});
  CHECK(head_budgets(policy, scores, always, 9).value() == Counts{5, 5});
  policy.budget.author_rounding = true;
  // Counts 5 and 1: 5 * 0.3 + 2 and 0.3 + 2.
  CHECK(head_budgets(policy, scores, always, 3).value() == Counts{4, 2});
  CHECK(head_budgets(policy, scores, always, 9).value() == Counts{5, 5});
  policy.budget.heads = HeadAllocator::kLava;
  policy.budget.head_floor_share = 0.0;
  CHECK(head_budgets(policy, scores, always, 3).value() == Counts{5, 1});
  CHECK(argument_of(head_budgets(policy, scores, always, -1).status()) == "base");
}

TEST_CASE("wrong numbers of layers are named") {
  const EvictionPolicy policy = find_policy("ripplekv").value();
  const PolicyCounts counts = count_policy_tokens(policy, 5000);
  const std::vector<double> three(3, 1.0);
  CHECK(argument_of(layer_budgets(policy, counts, 0, {}).status()) == "layers");
  CHECK(argument_of(layer_budgets(policy, counts, 4, three).status()) == "numbers");
  CHECK(argument_of(layer_budgets(policy, counts, 3, std::vector<double>{1, 2, -1}).status()) == "sensitivities[2]");
}

}  // namespace
}  // namespace foldkv
