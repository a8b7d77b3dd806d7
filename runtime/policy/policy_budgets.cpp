#include "runtime/policy/policy_budgets.h"

#include <algorithm>
#include <limits>

#include "runtime/base/check_range.h"
#include "runtime/policy/apportion.h"
#include "runtime/policy/cake_allocation.h"
#include "runtime/policy/cosine_schedule.h"
#include "runtime/policy/dynamic_allocation.h"
#include "runtime/policy/entropy_allocation.h"
#include "runtime/policy/episode_allocation.h"
#include "runtime/policy/importance_allocation.h"
#include "runtime/policy/joint_allocation.h"
#include "runtime/policy/pyramid_allocation.h"
#include "runtime/policy/selection.h"

namespace foldkv {
namespace {

using Budgets = StatusOr<std::vector<int64_t>>;

struct Allocation {
  const BudgetRules& rules;
  const PolicyCounts& counts;
  int64_t layers;
  std::span<const double> numbers;

  [[nodiscard]] int64_t base() const { return std::max<int64_t>(0, counts.budget - counts.kept_always()); }

  // Tokens that compete, in proportion to the weights, beside those kept always.
  [[nodiscard]] Budgets beside(std::span<const double> weights, int64_t cap) const {
    return apportion(weights, 0, cap, layers * base());
  }
  // All tokens in proportion to the weights, at least what is kept always.
  [[nodiscard]] Budgets within(std::span<const double> weights, int64_t lower, int64_t upper) const {
    upper = std::clamp(upper, counts.kept_always(), counts.tokens);
    lower = std::clamp(lower, counts.kept_always(), upper);
    return apportion(weights, lower, upper, layers * counts.budget);
  }
};

Budgets pyramid(const Allocation& allocation) {
  const PolicyCounts& counts = allocation.counts;
  const int64_t capacity = std::max(counts.budget, counts.kept_always());
  const PyramidShape shape{allocation.layers, counts.tokens, capacity, counts.kept_always(), allocation.rules.beta};
  if (allocation.rules.author_rounding) return pyramid_author_budgets(shape);
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, pyramid_weights(shape));
  return allocation.beside(weights, counts.competing());
}

Budgets dynamic(const Allocation& allocation) {
  const DynamicShape shape{allocation.layers, allocation.base(), allocation.counts.competing(),
                           allocation.rules.most_ratio};
  if (allocation.rules.author_rounding) {
    const std::vector<int64_t> counts(allocation.numbers.begin(), allocation.numbers.end());
    return dynamic_author_budgets(shape, counts);
  }
  FOLDKV_ASSIGN_OR_RETURN(const int64_t cap, dynamic_cap(shape));
  return allocation.beside(allocation.numbers, cap);
}

Budgets cake(const Allocation& allocation) {
  const int64_t cap = allocation.counts.competing();
  if (!allocation.rules.author_rounding) return allocation.beside(allocation.numbers, cap);
  return cake_author_budgets(allocation.numbers, allocation.layers * allocation.base(), cap);
}

Budgets lava(const Allocation& allocation) {
  if (!allocation.rules.author_rounding) return allocation.beside(allocation.numbers, allocation.counts.competing());
  return truncated_budgets(allocation.numbers, allocation.layers * allocation.base());
}

Budgets ripple(const Allocation& allocation) {
  const BudgetRules& rules = allocation.rules;
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, ripple_weights(allocation.numbers, rules.ripple_ratio,
                                                                            rules.ripple_gamma, rules.ripple_order));
  return allocation.within(weights, allocation.counts.kept_always() + 1, allocation.counts.tokens);
}

Budgets importance(const Allocation& allocation) {
  const ImportanceShape shape{allocation.layers * allocation.counts.budget, allocation.rules.floor_tokens,
                              allocation.rules.most_ratio};
  if (allocation.rules.author_rounding) return importance_author_budgets(shape, allocation.numbers);
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, importance_weights(shape, allocation.numbers));
  FOLDKV_ASSIGN_OR_RETURN(const int64_t cap, importance_cap(shape, allocation.layers));
  return allocation.within(weights, shape.floor, cap);
}

Budgets episode(const Allocation& allocation) {
  const BudgetRules& rules = allocation.rules;
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> weights, episode_weights(allocation.numbers, rules.sharpness));
  if (rules.author_rounding) {
    return episode_author_budgets(weights, allocation.layers * allocation.counts.budget, rules.layer_floor_share);
  }
  FOLDKV_ASSIGN_OR_RETURN(const Ratio floor, make_ratio("budget.layer_floor_share", rules.layer_floor_share));
  return allocation.within(weights, count_of(floor, allocation.counts.budget), allocation.counts.tokens);
}

Budgets cosine(const Allocation& allocation) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> ratios, cosine_ratios(allocation.layers, allocation.rules.decay));
  const bool whole = allocation.counts.budget == allocation.counts.tokens;
  if (whole || allocation.rules.author_rounding) return compound_counts(ratios, allocation.counts.tokens);
  return allocation.within(compound_shares(ratios), 0, allocation.counts.tokens);
}

Budgets allocate(const Allocation& allocation) {
  switch (allocation.rules.layers) {
    case LayerAllocator::kPyramid: return pyramid(allocation);
    case LayerAllocator::kRipple: return ripple(allocation);
    case LayerAllocator::kCake: return cake(allocation);
    case LayerAllocator::kLava: return lava(allocation);
    case LayerAllocator::kDynamic: return dynamic(allocation);
    case LayerAllocator::kImportance: return importance(allocation);
    case LayerAllocator::kCustom: return allocation.within(allocation.numbers, 0, allocation.counts.tokens);
    case LayerAllocator::kEpisode: return episode(allocation);
    case LayerAllocator::kCosine: return cosine(allocation);
    case LayerAllocator::kUniform: break;
  }
  return std::vector<int64_t>(static_cast<size_t>(allocation.layers), allocation.base());
}

bool weighs_by_numbers(LayerAllocator allocator) {
  return allocator != LayerAllocator::kUniform && allocator != LayerAllocator::kPyramid &&
         allocator != LayerAllocator::kCosine;
}

// Whether tokens kept always come on top of what the allocator gives.
bool kept_on_top(LayerAllocator allocator) {
  return allocator == LayerAllocator::kUniform || allocator == LayerAllocator::kPyramid ||
         allocator == LayerAllocator::kCake || allocator == LayerAllocator::kLava ||
         allocator == LayerAllocator::kDynamic;
}

}  // namespace

PolicyCounts count_policy_tokens(const EvictionPolicy& policy, int64_t tokens) {
  const SelectionRules& selection = policy.selection;
  const BudgetRules& budget = policy.budget;
  PolicyCounts counts;
  counts.tokens = tokens;
  counts.rows = std::min(tokens, std::max(selection.window_tokens, count_of(selection.window_share, tokens)));
  const int64_t recent = std::max({counts.rows, selection.recent_tokens, count_of(selection.recent_share, tokens)});
  counts.sinks = std::min(selection.sink_tokens, tokens);
  counts.recent = std::min(recent, tokens - counts.sinks);
  counts.budget = tokens;
  if (budget.ratio_of_unprotected) {
    counts.budget = count_beside(budget.keep_ratio, tokens, counts.kept_always());
  } else if (budget.keep_ratio.numerator > 0) {
    counts.budget = std::max(count_of(budget.keep_ratio, tokens), counts.kept_always());
  } else if (budget.tokens > 0) {
    counts.budget = std::min(budget.tokens, tokens);
  }
  return counts;
}

StatusOr<std::vector<int64_t>> layer_budgets(const EvictionPolicy& policy, const PolicyCounts& counts, int64_t layers,
                                             std::span<const double> numbers) {
  FOLDKV_RETURN_IF_ERROR(check_range("layers", layers, 1, 65'536));
  if (weighs_by_numbers(policy.budget.layers)) {
    FOLDKV_RETURN_IF_ERROR(check_range("numbers", std::ssize(numbers), layers, layers));
  }
  const bool schedule = policy.budget.layers == LayerAllocator::kCosine;
  if (counts.budget >= counts.tokens && !schedule) {
    return std::vector<int64_t>(static_cast<size_t>(layers), counts.tokens);
  }
  FOLDKV_ASSIGN_OR_RETURN(std::vector<int64_t> budgets, allocate({policy.budget, counts, layers, numbers}));
  const int64_t always = counts.kept_always();
  for (int64_t& tokens : budgets) {
    tokens = std::clamp(tokens + (kept_on_top(policy.budget.layers) ? always : 0), always, counts.tokens);
  }
  return budgets;
}

StatusOr<std::vector<int64_t>> head_budgets(const EvictionPolicy& policy, const ScoreTable& scores,
                                            std::span<const uint8_t> always, int64_t base) {
  FOLDKV_RETURN_IF_ERROR(check_range("base", base, 0, std::numeric_limits<int32_t>::max()));
  const BudgetRules& rules = policy.budget;
  const int64_t competing = count_competing(scores.tokens, always);
  if (rules.heads == HeadAllocator::kUniform) {
    return std::vector<int64_t>(static_cast<size_t>(scores.heads), std::min(base, competing));
  }
  const int64_t total = base * scores.heads;
  if (rules.heads == HeadAllocator::kAda && rules.author_rounding) {
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, count_joint_best(scores, always, 0, total));
    FOLDKV_ASSIGN_OR_RETURN(std::vector<int64_t> budgets, ada_author_budgets(counts, base, rules.head_floor_share));
    for (int64_t& budget : budgets) budget = std::min(budget, competing);
    return budgets;
  }
  FOLDKV_ASSIGN_OR_RETURN(const Ratio floor, make_ratio("budget.head_floor_share", rules.head_floor_share));
  return count_joint_best(scores, always, count_of(floor, base), total);
}

}  // namespace foldkv
