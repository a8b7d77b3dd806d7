#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace foldkv_lab {

// How many tokens a policy leaves each KV head of each layer on average, those kept always included.
struct TokenBudget {
  double share = 0;    // of the prompt, above 0 and at most 1; or, when 0,
  int64_t tokens = 0;  // 1 or more
};

// A share of the prompt as a user writes it: 0.25 or 1/4.
[[nodiscard]] absl::StatusOr<TokenBudget> parse_share(const std::string& text);

// "1/4" for shares that are one part of a whole, else "0.3"; "256" for tokens.
[[nodiscard]] std::string budget_name(const TokenBudget& budget);

}  // namespace foldkv_lab
