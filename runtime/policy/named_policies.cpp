#include "runtime/policy/named_policies.h"

#include <utility>

namespace foldkv {
namespace {

// A window's vote for the tokens before it, pooled: the base of most systems.
EvictionPolicy window_policy(int64_t window, Pooling pooling, int64_t pool_width, int64_t budget) {
  EvictionPolicy policy;
  policy.scoring.scorer = Scorer::kWindow;
  policy.reduction.pooling = pooling;
  policy.reduction.pool_width = pool_width;
  policy.selection.window_tokens = window;
  policy.budget.tokens = budget;
  return policy;
}

EvictionPolicy snapkv() { return window_policy(32, Pooling::kAverage, 5, 2048); }

EvictionPolicy streaming_llm(bool reindexed) {
  EvictionPolicy policy;
  policy.scoring.scorer = Scorer::kPosition;
  policy.selection = {.scope = SelectionScope::kLayer, .sink_tokens = 4, .reindexed = reindexed, .interval = 1};
  policy.budget.tokens = 4 + 512;
  return policy;
}

EvictionPolicy h2o() {
  EvictionPolicy policy;
  policy.scoring = {.scorer = Scorer::kAccumulated, .rows = RowReduction::kSum};
  policy.selection.recent_share = {1, 10};
  policy.selection.interval = 1;
  policy.budget.keep_ratio = {1, 5};
  return policy;
}

EvictionPolicy tova() {
  EvictionPolicy policy;
  policy.scoring = {.scorer = Scorer::kLastRow, .rows = RowReduction::kSum};
  policy.selection.scope = SelectionScope::kLayer;
  policy.selection.interval = 1;
  policy.budget.tokens = 1024;
  return policy;
}

EvictionPolicy scissorhands() {
  EvictionPolicy policy;
  policy.scoring = {
      .scorer = Scorer::kAccumulated, .rows = RowReduction::kNegatedBelow};
  policy.selection.interval = 1;
  policy.budget.tokens = 1024;
  return policy;
}

EvictionPolicy pyramidkv() {
  EvictionPolicy policy = window_policy(8, Pooling::kMaximum, 7, 2048);
  policy.budget.layers = LayerAllocator::kPyramid;
  return policy;
}

EvictionPolicy pyramidinfer() {
  EvictionPolicy policy;
  policy.scoring = {.scorer = Scorer::kWindow, .newest_row_weight = 1.2};
  policy.selection = {.scope = SelectionScope::kLayer, .window_share = {1, 5}, .sink_tokens = 4, .interval = 16};
  policy.budget.layers = LayerAllocator::kCosine;
  return policy;
}

EvictionPolicy cake() {
  EvictionPolicy policy = window_policy(32, Pooling::kAverage, 5, 1024);
  policy.scoring.rows = RowReduction::kMeanPlusVariance;
  policy.scoring.gamma = 200.0;
  policy.selection.interval = 1;
  policy.budget.layers = LayerAllocator::kCake;
  return policy;
}

EvictionPolicy dynamickv() {
  EvictionPolicy policy = window_policy(8, Pooling::kAverage, 5, 2048);
  policy.scoring.rows = RowReduction::kSum;
  policy.budget.layers = LayerAllocator::kDynamic;
  return policy;
}

EvictionPolicy lava() {
  EvictionPolicy policy = window_policy(32, Pooling::kMaximum, 7, 1024);
  policy.reduction.heads = HeadReduction::kMaximum;
  policy.reduction.weighting = ValueWeighting::kHeadValueMaximum;
  policy.budget.layers = LayerAllocator::kLava;
  policy.budget.heads = HeadAllocator::kLava;
  return policy;
}

EvictionPolicy adakv() {
  EvictionPolicy policy = window_policy(32, Pooling::kMaximum, 7, 1024);
  policy.reduction.pool_before_heads = false;
  policy.budget.heads = HeadAllocator::kAda;
  return policy;
}

EvictionPolicy compresskv() {
  EvictionPolicy policy = window_policy(8, Pooling::kAverage, 5, 1024);
  policy.scoring.rows = RowReduction::kSum;
  policy.scoring.voting_heads = 4;
  policy.selection.scope = SelectionScope::kLayer;
  policy.budget.layers = LayerAllocator::kImportance;
  policy.budget.most_ratio = 3.0;
  return policy;
}

EvictionPolicy criticalkv(HeadAllocator heads) {
  EvictionPolicy policy = window_policy(64, Pooling::kAverage, 5, 1024);
  policy.reduction.weighting = ValueWeighting::kOutputNormL1;
  policy.reduction.epsilon = 1e-4;
  policy.selection.first_stage_share = 0.5;
  policy.budget.heads = heads;
  return policy;
}

EvictionPolicy defensivekv() {
  EvictionPolicy policy = window_policy(32, Pooling::kAverage, 5, 1024);
  policy.scoring.rows = RowReduction::kMaximum;
  policy.reduction.heads = HeadReduction::kMaximum;
  policy.reduction.raise_to_mean = true;
  policy.reduction.weighting = ValueWeighting::kOutputNormL1;
  policy.selection.first_stage_mass = 0.9;
  policy.selection.first_stage_by_mean = true;
  policy.budget.heads = HeadAllocator::kAda;
  return policy;
}

EvictionPolicy expected_attention_policy() {
  EvictionPolicy policy;
  policy.scoring.scorer = Scorer::kExpectedAttention;
  policy.reduction.weighting = ValueWeighting::kValueNormL2;
  policy.selection.sink_tokens = 4;
  policy.selection.interval = 512;
  policy.budget.tokens = 2048;
  return policy;
}

EvictionPolicy with_layers(EvictionPolicy policy, LayerAllocator layers) {
  policy.budget.layers = layers;
  return policy;
}

EvictionPolicy bellowskv_evict() {
  EvictionPolicy policy = window_policy(64, Pooling::kMaximum, 13, 0);
  policy.scoring.rows = RowReduction::kSum;
  policy.reduction.heads = HeadReduction::kSum;
  policy.reduction.pool_before_heads = false;
  policy.reduction.pool_over_protected = true;
  policy.selection.scope = SelectionScope::kGroup;
  policy.selection.sink_tokens = 4;
  policy.budget.keep_ratio = {1, 2};
  policy.budget.ratio_of_unprotected = true;
  return policy;
}

NamedPolicy named(const char* name, EvictionPolicy policy, const char* description) {
  policy.name = name;
  return {std::move(policy), description};
}

std::vector<NamedPolicy> make_table() {
  return {
      named("full", {}, "keeps everything"),
      named("streaming-llm", streaming_llm(false), "sinks and recent tokens, at their own positions"),
      named("streaming-llm-reindexed", streaming_llm(true), "sinks and recent tokens, at positions in the cache"),
      named("h2o", h2o(), "attention added up over all rows, and recent tokens"),
      named("tova", tova(), "attention of the newest row, one set for all heads of a layer"),
      named("scissorhands", scissorhands(), "rows that gave a token less than an equal share"),
      named("snapkv", snapkv(), "vote of a window at the prompt's end, pooled"),
      named("pyramidkv", pyramidkv(), "SnapKV with more for lower layers, by equal steps"),
      named("pyramidinfer", pyramidinfer(), "vote of the last fifth, each layer of what the layer before it kept"),
      named("cake", cake(), "mean and variance over the window; layers by entropy and variance"),
      named("dynamickv", dynamickv(), "SnapKV with layers by their part of the best scores of all"),
      named("lava", lava(), "SnapKV times the head's largest value; layers by entropy, heads jointly"),
      named("adakv", adakv(), "SnapKV with heads that share a layer's budget beyond a floor"),
      named("compresskv", compresskv(), "vote of a layer's retrieval heads; layers by calibrated importance"),
      named("criticalkv", criticalkv(HeadAllocator::kUniform), "SnapKV, then attention times the output's norm"),
      named("critical-adakv", criticalkv(HeadAllocator::kAda), "CriticalKV with AdaKV's budgets of heads"),
      named("defensivekv", defensivekv(), "worst case over rows and heads, times the output's norm"),
      named("expected-attention", expected_attention_policy(), "attention of forecast queries, times the value's norm"),
      named("epicache", with_layers(snapkv(), LayerAllocator::kEpisode), "SnapKV with layers by how far keys change"),
      named("ripplekv", with_layers(snapkv(), LayerAllocator::kRipple), "SnapKV with layers by output sensitivity"),
      named("bellowskv-evict", bellowskv_evict(), "one vote of all heads and layers of a layer group"),
      named("ripple-bellows", with_layers(bellowskv_evict(), LayerAllocator::kRipple),
            "BellowsKV-Evict with RippleKV's budgets of layer groups"),
  };
}

}  // namespace

const std::vector<NamedPolicy>& named_policies() {
  static const std::vector<NamedPolicy> table = make_table();
  return table;
}

StatusOr<EvictionPolicy> find_policy(absl::string_view name) {
  std::string names;
  for (const NamedPolicy& entry : named_policies()) {
    if (entry.policy.name == name) return entry.policy;
    absl::StrAppend(&names, names.empty() ? "" : ", ", entry.policy.name);
  }
  return argument_error("policy", absl::StrCat("policy: got \"", name, "\", expected one of ", names));
}

}  // namespace foldkv
