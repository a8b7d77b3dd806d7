#include "samples/lab/named_policy.h"

#include <algorithm>
#include <string>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

Eviction policy(const std::string& name, const TokenBudget& budget, const LayerNumbers& numbers = {}) {
  auto eviction = named_policy(name, budget, numbers);
  REQUIRE_MESSAGE(eviction.ok(), eviction.status().message());
  return std::move(eviction).value();
}

TEST_CASE("the library's policies by name, none of which evicts what comes after the prompt") {
  const auto names = all_policy_names();
  REQUIRE(names.ok());
  CHECK(names->size() >= 22);
  for (const PolicyName& name : *names) {
    CAPTURE(name.name);
    CHECK_FALSE(name.description.empty());
    CHECK(policy(name.name, {.share = 0.5}).settings.interval == 0);
  }
  const auto refused = named_policy("magic", {.share = 0.5}, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(std::string(refused.status().message()).find("snapkv") != std::string::npos);
}

TEST_CASE("a budget stands in place of the authors' own, whichever kind that was") {
  const Eviction by_share = policy("snapkv", {.share = 0.25});  // theirs is in tokens
  CHECK(by_share.settings.keep_ratio == 0.25);
  CHECK(by_share.settings.budget_tokens == 0);
  const Eviction by_tokens = policy("h2o", {.tokens = 100});  // theirs is a ratio
  CHECK(by_tokens.settings.keep_ratio == 0.0);
  CHECK(by_tokens.settings.budget_tokens == 100);
  CHECK(policy("bellowskv-evict", {.share = 0.5}).settings.ratio_of_unprotected == 0);
  const Eviction full = policy("full", {.share = 0.5});
  CHECK(keeps_everything(full));
  CHECK(full.settings.keep_ratio == 0.0);
  CHECK_FALSE(keeps_everything(by_share));
}

TEST_CASE("numbers of layers go to the allocators that look at them") {
  const LayerNumbers numbers{{1, 2}, {3, 4}, {5, 6}};
  CHECK(policy("ripplekv", {.share = 0.5}, numbers).layer_numbers == numbers.sensitivities);
  CHECK(policy("ripple-bellows", {.share = 0.5}, numbers).layer_numbers == numbers.sensitivities);
  CHECK(policy("compresskv", {.share = 0.5}, numbers).layer_numbers == numbers.importances);
  CHECK(policy("epicache", {.share = 0.5}, numbers).layer_numbers == numbers.similarities);
  CHECK(policy("snapkv", {.share = 0.5}, numbers).layer_numbers.empty());
  CHECK(lacks_numbers(policy("epicache", {.share = 0.5})));
  CHECK_FALSE(lacks_numbers(policy("epicache", {.share = 0.5}, numbers)));
  CHECK_FALSE(lacks_numbers(policy("cake", {.share = 0.5})));
}

TEST_CASE("the library sees the arrays") {
  Eviction eviction = policy("ripplekv", {.share = 0.5}, {{1, 2}, {}, {}});
  foldkv_eviction view = eviction.view();
  CHECK(view.layer_numbers == eviction.layer_numbers.data());
  CHECK(view.layer_number_count == 2);
  CHECK(view.exempt_layers == nullptr);
  eviction.exempt_layers = {1};
  const Eviction copy = eviction;
  view = copy.view();
  CHECK(view.layer_numbers == copy.layer_numbers.data());
  CHECK(view.exempt_layers == copy.exempt_layers.data());
  CHECK(view.exempt_layer_count == 1);
}

}  // namespace
}  // namespace foldkv_lab::test
