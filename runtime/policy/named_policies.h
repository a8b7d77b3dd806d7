#pragma once

#include <vector>

#include "runtime/policy/eviction_policy.h"

namespace foldkv {

struct NamedPolicy {
  EvictionPolicy policy;
  const char* description = "";  // one line
};

// The systems of the literature with their authors' settings (methods.md sections 2 to 4), where a system is known by
// several the ones it runs with. Scores are made per KV head, query heads reduced by the mean unless the authors reduce
// them otherwise; authors who select per query head are followed in all but that. Budgets are the authors' usual ones,
// 1,024 tokens where they name none: set them anew to compare systems. All pass check_policy.
[[nodiscard]] const std::vector<NamedPolicy>& named_policies();

// Argument error "policy" that lists the names when there is none of this name.
[[nodiscard]] StatusOr<EvictionPolicy> find_policy(absl::string_view name);

}  // namespace foldkv
