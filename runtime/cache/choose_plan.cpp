#include "runtime/cache/choose_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/checked.h"
#include "runtime/calibration/plan_bits.h"
#include "runtime/policy/policy_budgets.h"

namespace foldkv {
namespace {

struct Candidate {
  int64_t plan = 0;
  int64_t bytes_per_token = 0;
  double ratio = 0.0;
  double cost = 0.0;
  double divergence = std::numeric_limits<double>::infinity();  // not measured
  CacheBytes bytes;        // with the whole prompt
  std::string shortcoming;  // the first wish that it does not fulfil, in words
};

std::string byte_text(int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < int64_t{1} << 20) return absl::StrFormat("%.1f KiB", number / 1024.0);
  return absl::StrFormat("%.1f MiB", number / (1024.0 * 1024.0));
}

// The smaller first, of equals the cheaper.
bool smaller(const Candidate& a, const Candidate& b) {
  return a.bytes_per_token != b.bytes_per_token ? a.bytes_per_token < b.bytes_per_token : a.cost < b.cost;
}
// The cheaper first, of equals the smaller.
bool cheaper(const Candidate& a, const Candidate& b) {
  return a.cost != b.cost ? a.cost < b.cost : a.bytes_per_token < b.bytes_per_token;
}

class Choosing {
 public:
  Choosing(const Runtime& runtime, const std::shared_ptr<const Model>& model,
           const std::shared_ptr<const Profile>& profile, const CacheWish& wish)
      : runtime_(runtime), model_(model), profile_(profile), wish_(wish) {}

  StatusOr<PlanChoice> run() {
    FOLDKV_RETURN_IF_ERROR(list_candidates());
    FOLDKV_RETURN_IF_ERROR(apply_wishes());
    const std::vector<const Candidate*> fulfilling = without_shortcoming();
    for (Candidate& candidate : candidates_) {
      const bool too_large = wish_.budget_bytes > 0 && candidate.bytes.total > wish_.budget_bytes;
      if (candidate.shortcoming.empty() && too_large) candidate.shortcoming = "too large";
    }
    const std::vector<const Candidate*> fitting = without_shortcoming();
    if (fitting.empty()) return choose_share(fulfilling);
    const bool by_cost = wish_.highest_cost > 0.0 || wish_.highest_divergence > 0.0;
    const Candidate& best = *best_of(fitting, by_cost ? smaller : cheaper);
    return choice_of(best, wish_.life.prompt_tokens, best.bytes,
                     by_cost ? "the smallest plan that fulfils every wish"
                             : "the plan with the least expected cost of those that fulfil every wish");
  }

 private:
  [[nodiscard]] bool evicts() const { return wish_.life.policy.eviction != nullptr; }

  // Of a sequence that keeps so many tokens of its prompt.
  StatusOr<CacheBytes> bytes_with(int64_t plan, int64_t kept) const {
    EstimateQuestion life = wish_.life;
    life.policy.plan = static_cast<size_t>(plan);
    if (evicts()) {
      auto eviction = std::make_shared<SequenceEviction>(*life.policy.eviction);
      eviction->policy.budget.tokens = kept;
      eviction->policy.budget.keep_ratio = {};
      eviction->policy.budget.ratio_of_unprotected = false;
      life.policy.eviction = std::move(eviction);
    } else {
      life.prompt_tokens = kept;
    }
    FOLDKV_ASSIGN_OR_RETURN(const Estimate estimate, estimate_sequence(runtime_, model_, profile_, life));
    const std::optional<int64_t> others = checked_multiply({wish_.sequences - 1, estimate.held_bytes});
    const std::optional<int64_t> own = checked_add(estimate.shared_bytes, estimate.peak_bytes);
    const std::optional<int64_t> total = others && own ? checked_add(*others, *own) : std::nullopt;
    if (total) return CacheBytes{estimate.held_bytes, estimate.shared_bytes, *total};
    return argument_error("wish.sequences", absl::StrCat("is ", wish_.sequences, ", each of ", estimate.held_bytes,
                                                         " bytes: more than a number of bytes holds"));
  }

  Status list_candidates() {
    const auto full = static_cast<double>(full_bytes_per_token(*profile_));
    for (int64_t plan = 0; plan < std::ssize(profile_->plans); ++plan) {
      Candidate candidate;
      const Plan& source = profile_->plans[static_cast<size_t>(plan)];
      candidate.plan = plan;
      candidate.bytes_per_token = bytes_per_token(*profile_, source);
      candidate.ratio = full / static_cast<double>(candidate.bytes_per_token);
      candidate.cost = expected_cost(*profile_, source);
      if (source.held_out_tokens > 0) candidate.divergence = source.held_out_divergence;
      FOLDKV_ASSIGN_OR_RETURN(candidate.bytes, bytes_with(plan, wish_.life.prompt_tokens));
      candidates_.push_back(std::move(candidate));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] std::vector<const Candidate*> without_shortcoming() const {
    std::vector<const Candidate*> left;
    for (const Candidate& candidate : candidates_) {
      if (candidate.shortcoming.empty()) left.push_back(&candidate);
    }
    return left;
  }

  [[nodiscard]] static const Candidate* best_of(const std::vector<const Candidate*>& candidates,
                                                bool (*before)(const Candidate&, const Candidate&)) {
    return *std::min_element(candidates.begin(), candidates.end(),
                             [&](const Candidate* a, const Candidate* b) { return before(*a, *b); });
  }

  // All wishes but the budget, one after the other: the first that leaves no plan is the one that cannot be had.
  Status apply_wishes() {
    const auto per_token = [](const Candidate& candidate) { return static_cast<double>(candidate.bytes_per_token); };
    FOLDKV_RETURN_IF_ERROR(apply("bytes_per_token", wish_.bytes_per_token, false, "too many bytes", per_token));
    FOLDKV_RETURN_IF_ERROR(
        apply("ratio", wish_.ratio, true, "ratio too low", [](const Candidate& candidate) { return candidate.ratio; }));
    FOLDKV_RETURN_IF_ERROR(apply("highest_cost", wish_.highest_cost, false, "cost too high",
                                 [](const Candidate& candidate) { return candidate.cost; }));
    return apply("highest_divergence", wish_.highest_divergence, false, "divergence too high or not measured",
                 [](const Candidate& candidate) { return candidate.divergence; });
  }

  // Every plan's figure shall be `wanted` at least (or at most).
  Status apply(absl::string_view name, double wanted, bool at_least, const char* shortcoming,
               const std::function<double(const Candidate&)>& figure) {
    if (wanted == 0.0) return absl::OkStatus();
    const std::vector<const Candidate*> left = without_shortcoming();
    const auto nearer = [&](const Candidate* a, const Candidate* b) {
      return at_least ? figure(*a) > figure(*b) : figure(*a) < figure(*b);
    };
    const Candidate& nearest = **std::min_element(left.begin(), left.end(), nearer);
    const double best = figure(nearest);
    if (at_least ? best < wanted : best > wanted) {
      const double factor = at_least ? wanted / best : best / wanted;
      const std::string which = applied_.empty() ? "" : " that fulfil " + applied_;
      return argument_error(
          absl::StrCat("wish.", name),
          absl::StrFormat("wants %.6g %s; of the plans%s %s is nearest with %.6g: off by a factor of %.3g", wanted,
                          at_least ? "or more" : "at most", which, name_of_plan(nearest), best, factor));
    }
    for (Candidate& candidate : candidates_) {
      const bool falls_short = at_least ? figure(candidate) < wanted : figure(candidate) > wanted;
      if (candidate.shortcoming.empty() && falls_short) candidate.shortcoming = shortcoming;
    }
    absl::StrAppend(&applied_, applied_.empty() ? "" : " and ", name);
    return absl::OkStatus();
  }

  // The most tokens of the prompt that fit under a plan, and their bytes.
  struct Share {
    int64_t tokens = 0;  // 0: none
    CacheBytes bytes;
  };

  // The fewest tokens that can be kept.
  [[nodiscard]] int64_t fewest() const {
    if (!evicts()) return 1;
    const PolicyCounts counts = count_policy_tokens(wish_.life.policy.eviction->policy, wish_.life.prompt_tokens);
    return std::max<int64_t>(1, counts.kept_always());
  }

  StatusOr<Share> share_under(const Candidate& candidate) const {
    Share share;
    int64_t fits = fewest() - 1;
    int64_t too_many = wish_.life.prompt_tokens;
    while (too_many - fits > 1) {
      const int64_t middle = fits + (too_many - fits) / 2;
      FOLDKV_ASSIGN_OR_RETURN(const CacheBytes bytes, bytes_with(candidate.plan, middle));
      if (bytes.total > wish_.budget_bytes) {
        too_many = middle;
        continue;
      }
      fits = middle;
      share = {fits, bytes};
    }
    return share;
  }

  // No plan fits with the whole prompt: a share of it.
  StatusOr<PlanChoice> choose_share(std::vector<const Candidate*> fulfilling) {
    if (wish_.lowest_keep_ratio > 0.0) {
      std::stable_sort(fulfilling.begin(), fulfilling.end(),
                       [](const Candidate* a, const Candidate* b) { return cheaper(*a, *b); });
      const double lowest = wish_.lowest_keep_ratio * static_cast<double>(wish_.life.prompt_tokens);
      for (const Candidate* candidate : fulfilling) {
        FOLDKV_ASSIGN_OR_RETURN(const Share share, share_under(*candidate));
        if (share.tokens == 0 || static_cast<double>(share.tokens) < lowest) continue;
        return choice_of(*candidate, share.tokens, share.bytes,
                         "the plan with the least expected cost that keeps enough of the prompt");
      }
    }
    const Candidate& smallest = *best_of(fulfilling, smaller);
    FOLDKV_ASSIGN_OR_RETURN(const Share share, share_under(smallest));
    if (share.tokens > 0) {
      return choice_of(smallest, share.tokens, share.bytes, "the smallest plan, and the share of the prompt that fits");
    }
    FOLDKV_ASSIGN_OR_RETURN(const CacheBytes least, bytes_with(smallest.plan, fewest()));
    return with_argument(
        budget_error(absl::StrFormat("is %d, expected %d or more: that is what %s in each of %d sequences takes "
                                     "under the smallest plan, %s",
                                     wish_.budget_bytes, least.total,
                                     evicts() ? "what the policy always keeps" : "one token", wish_.sequences,
                                     name_of_plan(smallest))),
        "wish.budget_bytes");
  }

  [[nodiscard]] PlanChoice choice_of(const Candidate& candidate, int64_t tokens_kept, const CacheBytes& bytes,
                                     absl::string_view reason) const {
    PlanChoice choice;
    choice.plan = candidate.plan;
    choice.bytes_per_token = candidate.bytes_per_token;
    choice.expected_cost = candidate.cost;
    choice.tokens_kept = tokens_kept;
    if (wish_.life.prompt_tokens > 0) {
      choice.keep_ratio = static_cast<double>(tokens_kept) / static_cast<double>(wish_.life.prompt_tokens);
    }
    choice.bytes = bytes;
    choice.explanation = explain(choice, reason);
    return choice;
  }

  [[nodiscard]] std::string name_of_plan(const Candidate& candidate) const {
    return profile_->plans[static_cast<size_t>(candidate.plan)].name;
  }

  [[nodiscard]] std::string question_text() const {
    std::vector<std::string> parts;
    parts.push_back(absl::StrFormat("%d sequence%s of %d + %d tokens", wish_.sequences, wish_.sequences == 1 ? "" : "s",
                                    wish_.life.prompt_tokens, wish_.life.generated_tokens));
    if (wish_.budget_bytes > 0) parts.push_back("in " + byte_text(wish_.budget_bytes));
    if (wish_.bytes_per_token > 0.0) {
      parts.push_back(absl::StrFormat("%.6g bytes per token at most", wish_.bytes_per_token));
    }
    if (wish_.ratio > 0.0) parts.push_back(absl::StrFormat("ratio %.6g or more", wish_.ratio));
    if (wish_.highest_cost > 0.0) parts.push_back(absl::StrFormat("cost %.3g at most", wish_.highest_cost));
    if (wish_.highest_divergence > 0.0) {
      parts.push_back(absl::StrFormat("divergence %.3g at most", wish_.highest_divergence));
    }
    return absl::StrJoin(parts, ", ");
  }

  [[nodiscard]] std::string explain(const PlanChoice& choice, absl::string_view reason) const {
    std::string text = absl::StrFormat("Asked: %s. Chosen: %s, %s; it takes %s", question_text(),
                                       name_of_plan(candidates_[static_cast<size_t>(choice.plan)]), reason,
                                       byte_text(choice.bytes.total));
    if (choice.tokens_kept < wish_.life.prompt_tokens) {
      absl::StrAppendFormat(&text, " with %d tokens of each prompt, %.1f%%", choice.tokens_kept,
                            100.0 * choice.keep_ratio);
    }
    text += ". Plans with whole prompts:";
    for (const Candidate& candidate : candidates_) {
      absl::StrAppendFormat(&text, "%s %s %s, cost %.3g%s%s", candidate.plan == 0 ? "" : ";", name_of_plan(candidate),
                            byte_text(candidate.bytes.total), candidate.cost, candidate.shortcoming.empty() ? "" : ", ",
                            candidate.shortcoming);
    }
    return text + ".";
  }

  const Runtime& runtime_;
  const std::shared_ptr<const Model>& model_;
  const std::shared_ptr<const Profile>& profile_;
  const CacheWish& wish_;
  std::vector<Candidate> candidates_;
  std::string applied_;  // names of the wishes that have been applied
};

}  // namespace

StatusOr<PlanChoice> choose_plan(const Runtime& runtime, const std::shared_ptr<const Model>& model,
                                 const std::shared_ptr<const Profile>& profile, const CacheWish& wish) {
  return Choosing(runtime, model, profile, wish).run();
}

}  // namespace foldkv
