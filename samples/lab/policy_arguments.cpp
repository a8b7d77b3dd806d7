#include "samples/lab/policy_arguments.h"

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/named_policy.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

// "weighed 31x + snapkv 1/2", "snapkv 1/2", "full". Where everything stays exact the codec's name says nothing.
std::string codec_name(const Codec& codec, const std::string& policy, const std::string& budget) {
  return absl::StrCat(codec.profile == nullptr ? "" : absl::StrCat(codec.name, " + "), policy,
                      budget.empty() ? "" : " ", budget);
}

// A sequence that lives for this question alone says whether the library can do it.
absl::Status try_out(FoldkvHost& host, const Codec& codec) {
  const absl::Status status = FoldkvAttention::create(host, codec.profile, codec.options).status();
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("--policy ", codec.name, ": ", status.message(),
                                   lacks_numbers(*codec.options.eviction) ? "; see --layers" : ""));
}

std::string policy_help() {
  std::string help =
      "eviction policies to compare, or all. Each at each budget is a codec of its own. After the prefix none of them "
      "evicts: what follows stays exact. ";
  const absl::StatusOr<std::vector<PolicyName>> policies = all_policy_names();
  if (!policies.ok()) return help;
  for (const PolicyName& policy : *policies) {
    absl::StrAppend(&help, &policy == policies->data() ? "" : "; ", policy.name, " (", policy.description, ")");
  }
  return help;
}

}  // namespace

void PolicyArguments::add_to(OptionList& app) {
  app.add("--policy", policies, policy_help());
  app.add("--keep", shares,
          "with --policy: tokens left to each KV head and layer on average, those kept always included, as "
          "shares of the prefix: 0.5 or 1/2");
  app.add("--keep-tokens", tokens, "with --policy: likewise, as numbers of tokens").check(OptionCheck::kPositive);
  app.add("--layers", layers,
          "with --policy: file with the numbers of layers that some policies need; the command layers writes it")
      .check(OptionCheck::kExistingFile);
}

absl::Status PolicyArguments::check() const {
  if (policies.empty()) {
    const bool idle = shares.empty() && tokens.empty() && layers.empty();
    return idle ? absl::OkStatus() : absl::InvalidArgumentError("--keep, --keep-tokens and --layers need --policy");
  }
  if (shares.empty() && tokens.empty() && policies != std::vector<std::string>{"full"}) {
    return absl::InvalidArgumentError("--policy needs --keep or --keep-tokens");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenBudget>> PolicyArguments::budgets() const {
  std::vector<TokenBudget> result;
  for (const std::string& share : shares) {
    LAB_ASSIGN_OR_RETURN(const TokenBudget budget, parse_share(share));
    result.push_back(budget);
  }
  for (const int64_t count : tokens) result.push_back({.tokens = count});
  return result;
}

absl::StatusOr<std::vector<std::string>> PolicyArguments::names() const {
  if (!all()) return policies;
  LAB_ASSIGN_OR_RETURN(const std::vector<PolicyName> known, all_policy_names());
  std::vector<std::string> result;
  for (const PolicyName& policy : known) result.push_back(policy.name);
  return result;
}

absl::Status PolicyArguments::add(FoldkvHost& host, const Codec& codec, const std::string& policy,
                                  const LayerNumbers& numbers, std::vector<Codec>* result) const {
  LAB_ASSIGN_OR_RETURN(std::vector<TokenBudget> asked, budgets());
  LAB_ASSIGN_OR_RETURN(const Eviction unbound, named_policy(policy, {}, numbers));
  if (keeps_everything(unbound)) asked = {{}};  // once, whatever the budgets
  for (const TokenBudget& budget : asked) {
    Codec evicting = codec;
    LAB_ASSIGN_OR_RETURN(evicting.options.eviction, named_policy(policy, budget, numbers));
    evicting.name = codec_name(codec, policy, keeps_everything(unbound) ? "" : budget_name(budget));
    const absl::Status status = try_out(host, evicting);
    if (status.ok()) {
      result->push_back(std::move(evicting));
    } else if (all()) {
      std::cerr << "note: left out: " << status.message() << "\n";
    } else {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Codec>> PolicyArguments::apply(FoldkvHost& host, std::vector<Codec> codecs) const {
  LAB_RETURN_IF_ERROR(check());
  if (policies.empty()) return codecs;
  LayerNumbers numbers;
  if (!layers.empty()) {
    LAB_ASSIGN_OR_RETURN(numbers, load_layer_numbers(layers, host.model().shape.layer_count));
  }
  LAB_ASSIGN_OR_RETURN(const std::vector<std::string> policy_names, names());
  std::vector<Codec> result;
  for (const Codec& codec : codecs) {
    for (const std::string& policy : policy_names) {
      LAB_RETURN_IF_ERROR(add(host, codec, policy, numbers, &result));
    }
  }
  return result;
}

}  // namespace foldkv_lab
