#include "runtime/cache/set_budgets.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "runtime/policy/position_selection.h"

namespace foldkv {
namespace {

// The layers over which the policy decides.
std::vector<int64_t> deciding_layers(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    if (evicts(policy, model, layer) && profile.source_of_layer[static_cast<size_t>(layer)] == layer) {
      layers.push_back(layer);
    }
  }
  return layers;
}

// What the caller or the profile says of layers.
std::vector<double> known_numbers(const PreparedProfile& profile, const EvictionPolicy& policy,
                                  std::span<const int64_t> layers) {
  const std::vector<double>& given = policy.budget.layer_numbers;
  const bool measured = profile.profile != nullptr && profile.profile->sensitivity.has_value();
  std::vector<double> numbers;
  for (int64_t layer : layers) {
    const auto index = static_cast<size_t>(layer);
    if (!given.empty()) {
      numbers.push_back(given[index]);
    } else if (policy.budget.layers == LayerAllocator::kRipple && measured) {
      numbers.push_back(profile.profile->sensitivity->values[index].divergence);
    }
  }
  return numbers;
}

// Without numbers that the allocator could look at, layers count as equal.
EvictionPolicy with_equal_layers(EvictionPolicy policy) {
  policy.budget.layers = LayerAllocator::kUniform;
  return policy;
}

bool looks_at_attention(LayerAllocator allocator) {
  return allocator == LayerAllocator::kCake || allocator == LayerAllocator::kLava ||
         allocator == LayerAllocator::kDynamic;
}

// With latents more is kept always: what stays exact.
PolicyCounts counts_of(const SequencePolicy& policy, const PreparedProfile& profile, int64_t tokens) {
  PolicyCounts counts = count_policy_tokens(policy.eviction->policy, tokens);
  if (profile.groups.empty()) return counts;
  counts.sinks = std::min(tokens, std::max(counts.sinks, policy.sink_tokens));
  counts.recent = std::min(tokens - counts.sinks, std::max(counts.recent, policy.recent_tokens));
  counts.budget = std::max(counts.budget, counts.kept_always());
  return counts;
}

// [deciding layers]
StatusOr<std::vector<int64_t>> budgets_of_layers(const EvictionPolicy& policy, const PreparedProfile& profile,
                                                 const PolicyCounts& counts, std::span<const int64_t> layers,
                                                 const std::vector<double>& measured) {
  const auto count = std::ssize(layers);
  if (count == 0) return std::vector<int64_t>();
  if (looks_at_attention(policy.budget.layers)) {
    return measured.empty() ? layer_budgets(with_equal_layers(policy), counts, count, {})
                            : layer_budgets(policy, counts, count, measured);
  }
  return layer_budgets(policy, counts, count, known_numbers(profile, policy, layers));
}

// How the budget of a layer falls on its heads, which hold equally many tokens.
using ShareHeads = absl::FunctionRef<StatusOr<std::vector<int64_t>>(std::span<const size_t> sets, int64_t budget)>;

bool decided(const SequenceStorage& storage) {
  return std::all_of(storage.exact_sets().begin(), storage.exact_sets().end(),
                     [](const ExactSet& set) { return !set.evicts || set.budget.tokens > 0; });
}

std::vector<TokenBudget> held_budgets(const SequenceStorage& storage) {
  std::vector<TokenBudget> budgets;
  for (const ExactSet& set : storage.exact_sets()) budgets.push_back(set.budget);
  return budgets;
}

std::vector<size_t> sets_of_layer(const SequenceStorage& storage, int64_t layer) {
  std::vector<size_t> sets;
  for (const ExactPlane& plane : storage.planes_of(layer)) {
    sets.push_back(storage.set_index_of(plane));
  }
  return sets;
}

// From the sums of layers' budgets to tokens of sets, which all layers of a set hold: means cut to whole tokens, and
// one more for the sets of the largest remainders, ties to the lower index, as long as the sum over layers allows.
void share_remainders(std::span<const int64_t> layers_of_set, std::vector<TokenBudget>& budgets) {
  std::vector<size_t> order;
  std::vector<int64_t> remainders(budgets.size());
  int64_t left = 0;
  for (size_t set = 0; set < budgets.size(); ++set) {
    if (layers_of_set[set] == 0) continue;
    remainders[set] = budgets[set].tokens % layers_of_set[set];
    budgets[set].tokens /= layers_of_set[set];
    left += remainders[set];
    if (remainders[set] > 0) order.push_back(set);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return remainders[a] * layers_of_set[b] > remainders[b] * layers_of_set[a];
  });
  for (const size_t set : order) {
    if (layers_of_set[set] > left) continue;
    ++budgets[set].tokens;
    left -= layers_of_set[set];
  }
}

StatusOr<std::vector<TokenBudget>> spread_budgets(const SequenceStorage& storage, std::span<const int64_t> layers,
                                                  std::span<const int64_t> of_layers, int64_t recent,
                                                  ShareHeads share_heads) {
  std::vector<TokenBudget> budgets = held_budgets(storage);
  std::vector<int64_t> layers_of_set(budgets.size());
  for (size_t index = 0; index < layers.size(); ++index) {
    const std::vector<size_t> sets = sets_of_layer(storage, layers[index]);
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int64_t> shares, share_heads(sets, of_layers[index]));
    for (size_t head = 0; head < sets.size(); ++head) {
      budgets[sets[head]].tokens += shares[head];
      ++layers_of_set[sets[head]];
    }
  }
  share_remainders(layers_of_set, budgets);
  for (size_t set = 0; set < budgets.size(); ++set) {
    if (layers_of_set[set] == 0) continue;
    budgets[set].tokens = std::max<int64_t>(1, budgets[set].tokens);
    budgets[set].recent = recent;
  }
  return budgets;
}

std::vector<int64_t> share_equally(std::span<const size_t> sets, int64_t budget) {
  return std::vector<int64_t>(sets.size(), budget);
}

// The heads of a layer compete for its budget, by the policy's head allocator.
class HeadShares {
 public:
  HeadShares(const SetScores& scores, const EvictionPolicy& policy, const PolicyCounts& counts)
      : scores_(scores), policy_(policy), counts_(counts) {}

  [[nodiscard]] StatusOr<std::vector<int64_t>> share(std::span<const size_t> sets, int64_t budget) const {
    const auto heads = std::ssize(sets);
    const int64_t base = budget - counts_.kept_always();
    if (policy_.budget.heads == HeadAllocator::kUniform || heads == 1 || base <= 0 || !scores_.moment().prompt_ends) {
      return share_equally(sets, budget);
    }
    const std::vector<uint8_t> always = mark_ends(counts_.tokens, counts_.sinks, counts_.recent);
    ScoreTable table(heads, counts_.tokens);
    for (int64_t head = 0; head < heads; ++head) {
      FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> list, list_of(sets[static_cast<size_t>(head)], always, budget));
      std::copy(list.begin(), list.end(), table.head(head).begin());
    }
    FOLDKV_ASSIGN_OR_RETURN(std::vector<int64_t> shares, head_budgets(policy_, table, always, base));
    for (int64_t& tokens : shares) tokens += counts_.kept_always();
    return shares;
  }

 private:
  // A first stage by share of the budget comes after the heads have their budgets, one by mass before.
  [[nodiscard]] StatusOr<std::vector<double>> list_of(size_t set, std::span<const uint8_t> always,
                                                      int64_t budget) const {
    if (policy_.selection.first_stage_share > 0.0) return scores_.base(set);
    return scores_.ranking(set, always, budget);
  }

  const SetScores& scores_;
  const EvictionPolicy& policy_;
  const PolicyCounts& counts_;
};

// The same for all: the budgets of layers, by numbers that were measured in attention or without, then those of sets.
StatusOr<std::vector<TokenBudget>> budgets_of_sets(const Model& model, const PreparedProfile& profile,
                                                   const SequencePolicy& policy, const SequenceStorage& storage,
                                                   const PolicyCounts& counts, const std::vector<double>& measured,
                                                   ShareHeads share_heads) {
  if (decided(storage)) return held_budgets(storage);
  const std::vector<int64_t> layers = deciding_layers(model, profile, policy);
  FOLDKV_ASSIGN_OR_RETURN(
      const std::vector<int64_t> of_layers,
      budgets_of_layers(policy.eviction->policy, profile, counts_of(policy, profile, counts.tokens), layers, measured));
  return spread_budgets(storage, layers, of_layers, counts.recent, share_heads);
}

}  // namespace

StatusOr<std::vector<TokenBudget>> planned_budgets(const Model& model, const PreparedProfile& profile,
                                                   const SequencePolicy& policy, const SequenceStorage& storage,
                                                   int64_t fed_tokens) {
  const PolicyCounts counts = count_policy_tokens(policy.eviction->policy, fed_tokens);
  return budgets_of_sets(model, profile, policy, storage, counts, {}, share_equally);
}

StatusOr<std::vector<TokenBudget>> set_budgets(const Sequence& sequence, const SetScores& scores) {
  const EvictionPolicy& rules = sequence.policy().eviction->policy;
  const PolicyCounts counts = count_policy_tokens(rules, scores.moment().fed_tokens);
  const HeadShares heads(scores, rules, counts);
  return budgets_of_sets(sequence.model(), sequence.shared_profile()->data, sequence.policy(), sequence.storage(),
                         counts, scores.layer_numbers(),
                         [&](std::span<const size_t> sets, int64_t budget) { return heads.share(sets, budget); });
}

}  // namespace foldkv
