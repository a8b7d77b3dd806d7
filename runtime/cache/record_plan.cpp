#include "runtime/cache/record_plan.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/cache/eviction_needs.h"
#include "runtime/cache/query_moments.h"

namespace foldkv {
namespace {

constexpr int64_t kNumberBytes = static_cast<int64_t>(sizeof(float));

void plan_lists(const SequenceStorage& storage, int64_t new_tokens, RecordPlan& plan) {
  for (const ExactSet& set : storage.exact_sets()) {
    RecordPlan::List& list = plan.lists.emplace_back();
    if (!set.evicts) continue;
    list.offset = plan.list_numbers;
    list.latents = storage.latents_beside(set);
    list.tokens = storage.tokens_of(set, new_tokens);
    plan.list_numbers += list.tokens;
  }
  for (int64_t layer = 0; layer < storage.layer_count(); ++layer) {
    int64_t numbers = 0;
    for (const ExactPlane& plane : storage.planes_of(layer)) numbers += plan.list_of(storage, plane).tokens;
    plan.layer_numbers = std::max(plan.layer_numbers, numbers);
  }
}

void plan_window(const Model& model, const SequencePolicy& policy, RecordPlan& plan) {
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    const bool used = evicts(policy, model, layer);
    plan.window_offsets.push_back(used ? plan.window_row_numbers : -1);
    if (used) plan.window_row_numbers += model.layer(layer).query_width() + model.layer(layer).query_heads;
  }
}

void plan_moments(const Model& model, const SequencePolicy& policy, bool observed, RecordPlan& plan) {
  int64_t numbers = 0;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    const bool used = evicts(policy, model, layer);
    plan.moment_offsets.push_back(used ? numbers : -1);
    if (used) numbers += moment_numbers(model.layer(layer));
  }
  if (observed) plan.moment_numbers = numbers;
}

}  // namespace

int64_t window_row_numbers(const Model& model, const SequencePolicy& policy) {
  RecordPlan plan;
  plan_window(model, policy, plan);
  return plan.window_row_numbers;
}

int64_t all_moment_numbers(const Model& model, const SequencePolicy& policy) {
  RecordPlan plan;
  plan_moments(model, policy, true, plan);
  return plan.moment_numbers;
}

int64_t RecordPlan::moment_bytes() const { return moment_numbers * kNumberBytes; }

int64_t RecordPlan::scratch_bytes() const {
  return round_up((list_numbers + layer_numbers) * kNumberBytes, kBlockAlignment);
}

int64_t RecordPlan::window_bytes() const { return window_rows * window_row_numbers * kNumberBytes; }

RecordPlan plan_record(const Model& model, const SequencePolicy& policy, const SequenceStorage& storage,
                       const RecordQuestion& question) {
  RecordPlan plan;
  if (policy.eviction == nullptr) return plan;
  const AttentionNeeds needs =
      attention_needs(policy.eviction->policy, question.prompt_open, storage.token_count() + question.new_tokens);
  if (needs.scores) plan_lists(storage, question.new_tokens, plan);
  if (policy.eviction->policy.scoring.scorer == Scorer::kExpectedAttention) {
    plan_moments(model, policy, needs.moments, plan);
  }
  if (needs.window_rows == 0) return plan;
  plan.window_rows = std::min(needs.window_rows, question.earlier_rows + question.new_tokens);
  plan_window(model, policy, plan);
  return plan;
}

}  // namespace foldkv
