#include "samples/lab/token_budget.h"

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace foldkv_lab {
namespace {

bool read_share(const std::string& text, double* share) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  double below = 1.0;
  if (parts.size() > 2 || !absl::SimpleAtod(parts[0], share)) return false;
  if (parts.size() == 2 && !absl::SimpleAtod(parts[1], &below)) return false;
  *share /= below;
  return true;
}

}  // namespace

absl::StatusOr<TokenBudget> parse_share(const std::string& text) {
  TokenBudget budget;
  // What is not a number fails here too.
  if (!read_share(text, &budget.share) || !(budget.share > 0.0 && budget.share <= 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: got \"", text, "\", expected a share of the prompt above 0, at most 1, as 0.25 or 1/4"));
  }
  return budget;
}

std::string budget_name(const TokenBudget& budget) {
  if (budget.share == 0.0) return absl::StrCat(budget.tokens);
  const double parts = std::round(1.0 / budget.share);
  if (parts == 1.0 && budget.share == 1.0) return "1";
  return parts > 1.0 && std::abs(parts * budget.share - 1.0) < 1e-9 ? absl::StrCat("1/", parts)
                                                                    : absl::StrCat(budget.share);
}

}  // namespace foldkv_lab
