#include "runtime/policy/selection.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace foldkv {
namespace {

bool competes(std::span<const uint8_t> always, size_t token) { return always.empty() || always[token] == 0; }

std::vector<double> competing_scores(std::span<const double> scores, std::span<const uint8_t> always) {
  std::vector<double> competing;
  competing.reserve(scores.size());
  for (size_t t = 0; t < scores.size(); ++t) {
    if (competes(always, t)) competing.push_back(scores[t]);
  }
  return competing;
}

}  // namespace

Status check_scores(std::span<const double> scores, std::span<const uint8_t> always) {
  if (!always.empty() && always.size() != scores.size()) {
    return argument_error("always",
                          absl::StrCat("always: got ", always.size(), " tokens, expected 0 or ", scores.size()));
  }
  for (size_t t = 0; t < scores.size(); ++t) {
    if (competes(always, t) && std::isnan(scores[t])) {
      return numeric_error(absl::StrCat("the score of token ", t, " is not a number"));
    }
  }
  return absl::OkStatus();
}

int64_t count_competing(int64_t tokens, std::span<const uint8_t> always) {
  return always.empty() ? tokens : std::ranges::count(always, uint8_t{0});
}

SelectionCut find_cut(std::vector<double> scores, int64_t count) {
  const auto last = scores.begin() + (count - 1);
  std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
  const double value = *last;
  // All above are in front of the last that is taken.
  return {value, count - std::count_if(scores.begin(), last, [&](double score) { return score > value; })};
}

StatusOr<std::vector<int32_t>> select_tokens(std::span<const double> scores, std::span<const uint8_t> always,
                                             int64_t count) {
  FOLDKV_RETURN_IF_ERROR(check_scores(scores, always));
  if (count < 0) return argument_error("count", absl::StrCat("count: got ", count, ", expected 0 or more"));
  std::vector<double> competing = competing_scores(scores, always);
  const int64_t kept_always = std::ssize(scores) - std::ssize(competing);
  const int64_t best = std::clamp<int64_t>(count - kept_always, 0, std::ssize(competing));
  CutTaker taker(best == 0 ? SelectionCut{HUGE_VAL, 0} : find_cut(std::move(competing), best));
  std::vector<int32_t> kept;
  kept.reserve(static_cast<size_t>(kept_always + best));
  for (size_t t = 0; t < scores.size(); ++t) {
    if (!competes(always, t) || taker.takes(scores[t])) kept.push_back(static_cast<int32_t>(t));
  }
  return kept;
}

}  // namespace foldkv
