#include "samples/lab/named_policy.h"

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

void set_budget(const TokenBudget& budget, foldkv_eviction* settings) {
  settings->keep_ratio = budget.share;
  settings->budget_tokens = budget.share == 0.0 ? budget.tokens : 0;
  // BellowsKV-Evict's own ratio is of the tokens that compete, which would leave it more than others are left.
  settings->ratio_of_unprotected = 0;
}

}  // namespace

absl::StatusOr<std::vector<PolicyName>> all_policy_names() {
  std::vector<PolicyName> names;
  for (int32_t index = 0; index < foldkv_policy_count(); ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_policy_info info, "listing policies", foldkv::policy_info(index));
    names.push_back({info.name, info.description});
  }
  return names;
}

absl::StatusOr<Eviction> named_policy(const std::string& name, const TokenBudget& budget,
                                      const LayerNumbers& numbers) {
  Eviction eviction;
  LAB_ASSIGN_OR_RETURN_FOLDKV(eviction.settings, "--policy", foldkv::find_policy(name.c_str()));
  if (keeps_everything(eviction)) return eviction;
  set_budget(budget, &eviction.settings);
  eviction.settings.interval = 0;
  const std::vector<double>* list = numbers.for_allocator(eviction.settings.layer_allocator);
  if (list != nullptr) eviction.layer_numbers = *list;
  return eviction;
}

bool lacks_numbers(const Eviction& eviction) {
  return LayerNumbers().for_allocator(eviction.settings.layer_allocator) != nullptr && eviction.layer_numbers.empty();
}

bool keeps_everything(const Eviction& eviction) { return eviction.settings.scorer == FOLDKV_SCORER_NONE; }

}  // namespace foldkv_lab
