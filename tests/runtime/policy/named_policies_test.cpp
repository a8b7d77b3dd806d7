#include "runtime/policy/named_policies.h"

#include <set>
#include <string>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("every system has a name of its own, one line, and passes") {
  std::set<std::string> names;
  for (const NamedPolicy& entry : named_policies()) {
    const std::string description = entry.description;
    CHECK(names.insert(entry.policy.name).second);
    CHECK_FALSE(description.empty());
    CHECK(description.find('\n') == std::string::npos);
    const Status status = check_policy(entry.policy);
    CHECK_MESSAGE(status.ok(), entry.policy.name, ": ", std::string(status.message()));
    CHECK(find_policy(entry.policy.name).value().name == entry.policy.name);
    CHECK_FALSE(entry.policy.budget.author_rounding);
  }
  for (const char* name : {"full",
                           "streaming-llm",
                           "streaming-llm-reindexed",
                           "h2o",
                           "tova",
                           "scissorhands",
                           "snapkv",
                           "pyramidkv",
                           "pyramidinfer",
                           "cake",
                           "dynamickv",
                           "lava",
                           "adakv",
                           "compresskv",
                           "criticalkv",
                           "critical-adakv",
                           "defensivekv",
                           "expected-attention",
                           "epicache",
                           "ripplekv",
                           "bellowskv-evict",
                           "ripple-bellows"}) {
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("settings that the papers' numbers rest on") {
  CHECK(find_policy("streaming-llm").value().selection.sink_tokens == 4);
  CHECK(find_policy("streaming-llm-reindexed").value().selection.reindexed);
  CHECK(find_policy("cake").value().scoring.gamma == 200.0);
  CHECK(find_policy("adakv").value().budget.head_floor_share == 0.2);
  CHECK(find_policy("compresskv").value().scoring.voting_heads == 4);
  CHECK(find_policy("compresskv").value().budget.most_ratio == 3.0);
  CHECK(find_policy("criticalkv").value().reduction.epsilon == 1e-4);
  CHECK(find_policy("defensivekv").value().selection.first_stage_mass == 0.9);
  CHECK(find_policy("expected-attention").value().scoring.future_tokens == 512);
  CHECK(find_policy("ripplekv").value().budget.ripple_ratio == 1.5);
  CHECK(find_policy("bellowskv-evict").value().reduction.pool_width == 13);
  CHECK(find_policy("bellowskv-evict").value().selection.window_tokens == 64);
}

TEST_CASE("an unknown name is answered with those there are") {
  const Status status = find_policy("snap").status();
  CHECK(argument_of(status) == "policy");
  CHECK(status.message().find("snapkv, pyramidkv") != std::string::npos);
}

}  // namespace
}  // namespace foldkv
