// golden/group_eviction.json: BellowsKV-Evict.
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/pooling.h"
#include "runtime/policy/position_selection.h"
#include "runtime/policy/selection.h"
#include "runtime/policy/token_count.h"
#include "tests/support/golden.h"

namespace foldkv {
namespace {

TEST_CASE("golden/group_eviction.json") {
  const nlohmann::json file = test::read_golden("group_eviction");
  for (const auto& golden : file["cases"]) {
    const std::vector<double> sums = test::numbers(golden["scores"]);
    const auto tokens = static_cast<int64_t>(sums.size());
    const auto sinks = golden["sinks"].get<int64_t>();
    const auto recent = golden["recent"].get<int64_t>();
    ScoreTable scores(1, tokens);
    scores.scores = sums;
    const ScoreTable pooled = pool_tokens(scores, Pooling::kMaximum, 13).value();
    const Ratio ratio = make_ratio("keep_ratio", golden["keep_ratio"].get<double>()).value();
    const int64_t count = count_beside(ratio, tokens, sinks + recent);
    CHECK(select_tokens(pooled.scores, mark_ends(tokens, sinks, recent), count).value() ==
          golden["kept"].get<std::vector<int32_t>>());
  }
}

}  // namespace
}  // namespace foldkv
