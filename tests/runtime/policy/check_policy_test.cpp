#include <cmath>
#include <functional>

#include "doctest/doctest.h"
#include "runtime/policy/eviction_policy.h"
#include "runtime/policy/named_policies.h"

namespace foldkv {
namespace {

// The field that is refused after a change of a system that passes.
std::string refused(const char* name, const std::function<void(EvictionPolicy&)>& change) {
  EvictionPolicy policy = find_policy(name).value();
  REQUIRE(check_policy(policy).ok());
  change(policy);
  return argument_of(check_policy(policy));
}

TEST_CASE("values out of range are refused by name") {
  const auto snapkv = [](const auto& change) { return refused("snapkv", change); };
  CHECK(snapkv([](auto& p) { p.scoring.scorer = static_cast<Scorer>(0); }) == "scoring.scorer");
  CHECK(snapkv([](auto& p) { p.scoring.rows = static_cast<RowReduction>(6); }) == "scoring.rows");
  CHECK(snapkv([](auto& p) { p.scoring.gamma = -1.0; }) == "scoring.gamma");
  CHECK(snapkv([](auto& p) { p.scoring.newest_row_weight = 0.5; }) == "scoring.newest_row_weight");
  CHECK(snapkv([](auto& p) { p.scoring.future_tokens = 0; }) == "scoring.future_tokens");
  CHECK(snapkv([](auto& p) { p.reduction.pool_width = 4; }) == "reduction.pool_width");
  CHECK(snapkv([](auto& p) { p.reduction.pool_width = 0; }) == "reduction.pool_width");
  CHECK(snapkv([](auto& p) { p.reduction.epsilon = std::nan(""); }) == "reduction.epsilon");
  CHECK(snapkv([](auto& p) { p.reduction.heads = static_cast<HeadReduction>(4); }) == "reduction.heads");
  CHECK(snapkv([](auto& p) { p.selection.sink_tokens = -1; }) == "selection.sink_tokens");
  CHECK(snapkv([](auto& p) { p.selection.recent_share = {3, 2}; }) == "selection.recent_share");
  CHECK(snapkv([](auto& p) { p.selection.recent_share = {0, 0}; }) == "selection.recent_share");
  CHECK(snapkv([](auto& p) { p.selection.interval = -1; }) == "selection.interval");
  CHECK(snapkv([](auto& p) { p.budget.beta = 0; }) == "budget.beta");
  CHECK(snapkv([](auto& p) { p.budget.ripple_ratio = 0.5; }) == "budget.ripple_ratio");
  CHECK(snapkv([](auto& p) { p.budget.ripple_gamma = 0.5; }) == "budget.ripple_gamma");
  CHECK(snapkv([](auto& p) { p.budget.entropy_temperature = 0.0; }) == "budget.entropy_temperature");
  CHECK(snapkv([](auto& p) { p.budget.most_ratio = 0.5; }) == "budget.most_ratio");
  CHECK(snapkv([](auto& p) { p.budget.layer_floor_share = 1.5; }) == "budget.layer_floor_share");
  CHECK(snapkv([](auto& p) { p.budget.sharpness = -1.0; }) == "budget.sharpness");
  CHECK(snapkv([](auto& p) { p.budget.decay = 1.5; }) == "budget.decay");
  CHECK(snapkv([](auto& p) { p.budget.tokens = -1; }) == "budget.tokens");
  CHECK(snapkv([](auto& p) { p.budget.layers = static_cast<LayerAllocator>(11); }) == "budget.layers");
  CHECK(snapkv([](auto& p) { p.budget.heads = static_cast<HeadAllocator>(4); }) == "budget.heads");
  CHECK(snapkv([](auto& p) { p.budget.layer_numbers = {1.0, std::nan("")}; }) == "budget.layer_numbers[1]");
}

TEST_CASE("budgets need one source") {
  CHECK(refused("snapkv", [](auto& p) { p.budget.keep_ratio = {1, 2}; }) == "budget.keep_ratio");
  CHECK(refused("snapkv", [](auto& p) { p.budget.tokens = 0; }) == "budget.tokens");
  CHECK(refused("snapkv", [](auto& p) { p.budget.tokens = 31; }) == "budget.tokens");  // the window alone has 32
  CHECK(refused("snapkv", [](auto& p) { p.budget.tokens = 32; }).empty());
  CHECK(refused("full", [](auto& p) { p.budget.tokens = 100; }) == "budget.tokens");
  CHECK(refused("full", [](auto& p) { p.selection.interval = 1; }) == "selection.interval");
  CHECK(refused("bellowskv-evict", [](auto& p) { p.budget.keep_ratio = {0, 1}; }).empty());
  CHECK(refused("h2o", [](auto& p) { p.selection.recent_tokens = 8; }) == "selection.recent_share");
  CHECK(refused("pyramidinfer", [](auto& p) { p.selection.window_tokens = 8; }) == "selection.window_share");
}

TEST_CASE("parts that need scores are refused without them") {
  const auto streaming = [](const auto& change) { return refused("streaming-llm", change); };
  CHECK(streaming([](auto& p) { p.reduction.pooling = Pooling::kMaximum; }) == "reduction.pooling");
  CHECK(streaming([](auto& p) { p.reduction.weighting = ValueWeighting::kValueNormL2; }) == "reduction.weighting");
  CHECK(streaming([](auto& p) { p.reduction.raise_to_mean = true; }) == "reduction.raise_to_mean");
  CHECK(streaming([](auto& p) { p.scoring.voting_heads = 4; }) == "scoring.voting_heads");
  CHECK(streaming([](auto& p) { p.scoring.newest_row_weight = 1.2; }) == "scoring.newest_row_weight");
  CHECK(streaming([](auto& p) { p.selection.window_tokens = 8; }) == "selection.window_tokens");
  CHECK(streaming([](auto& p) { p.budget.layers = LayerAllocator::kLava; }) == "budget.layers");
  CHECK(streaming([](auto& p) { p.budget.layers = LayerAllocator::kCake; }) == "budget.layers");
  CHECK(streaming([](auto& p) {
          p.selection.scope = SelectionScope::kHead;
          p.budget.heads = HeadAllocator::kAda;
        }) == "budget.heads");
  CHECK(streaming([](auto& p) { p.budget.layers = LayerAllocator::kRipple; }).empty());
  CHECK(refused("h2o", [](auto& p) { p.budget.layers = LayerAllocator::kCake; }) == "budget.layers");
  CHECK(refused("snapkv", [](auto& p) { p.selection.window_tokens = 0; }) == "selection.window_tokens");
}

TEST_CASE("scopes and heads must agree") {
  CHECK(refused("adakv", [](auto& p) { p.selection.scope = SelectionScope::kGroup; }) == "budget.heads");
  CHECK(refused("compresskv", [](auto& p) { p.selection.scope = SelectionScope::kHead; }) == "scoring.voting_heads");
  CHECK(refused("adakv", [](auto& p) { p.selection.reindexed = true; }) == "selection.reindexed");
  CHECK(refused("snapkv", [](auto& p) { p.selection.reindexed = true; }).empty());
  CHECK(refused("tova", [](auto& p) { p.selection.reindexed = true; }).empty());
}

TEST_CASE("stages, roundings and layer numbers that lead nowhere") {
  CHECK(refused("snapkv", [](auto& p) { p.selection.first_stage_share = 0.5; }) == "selection.first_stage_share");
  CHECK(refused("snapkv", [](auto& p) { p.selection.first_stage_mass = 0.5; }) == "selection.first_stage_mass");
  CHECK(refused("snapkv", [](auto& p) { p.selection.first_stage_by_mean = true; }) == "selection.first_stage_by_mean");
  CHECK(refused("criticalkv", [](auto& p) { p.selection.first_stage_mass = 0.9; }) == "selection.first_stage_mass");
  CHECK(refused("snapkv", [](auto& p) { p.budget.author_rounding = true; }) == "budget.author_rounding");
  CHECK(refused("cake", [](auto& p) { p.budget.author_rounding = true; }).empty());
  CHECK(refused("adakv", [](auto& p) { p.budget.author_rounding = true; }).empty());
  CHECK(refused("bellowskv-evict", [](auto& p) {
          p.budget.layers = LayerAllocator::kPyramid;
          p.budget.author_rounding = true;
        }) == "budget.author_rounding");
  CHECK(refused("snapkv", [](auto& p) { p.budget.layers = LayerAllocator::kCustom; }) == "budget.layer_numbers");
  EvictionPolicy custom = find_policy("snapkv").value();
  custom.budget.layers = LayerAllocator::kCustom;
  custom.budget.layer_numbers = {1, 2, 3};
  CHECK(check_policy(custom, 3).ok());
  CHECK(argument_of(check_policy(custom, 4)) == "budget.layer_numbers");
}

}  // namespace
}  // namespace foldkv
