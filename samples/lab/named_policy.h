#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/eviction.h"
#include "samples/lab/layer_numbers.h"
#include "samples/lab/token_budget.h"

namespace foldkv_lab {

struct PolicyName {
  std::string name;
  std::string description;
};

// The eviction policies that the library knows by name.
[[nodiscard]] absl::StatusOr<std::vector<PolicyName>> all_policy_names();

// One of them with its authors' settings but for the budget, and for eviction while generated tokens come, of which
// there is none. Numbers of layers are those that its allocator looks at. A policy that keeps everything has no budget.
[[nodiscard]] absl::StatusOr<Eviction> named_policy(const std::string& name, const TokenBudget& budget,
                                                    const LayerNumbers& numbers);

// Whether its allocator looks at numbers of layers that are not there. (RippleKV's may be in a profile.)
[[nodiscard]] bool lacks_numbers(const Eviction& eviction);

// Whether it keeps every token.
[[nodiscard]] bool keeps_everything(const Eviction& eviction);

}  // namespace foldkv_lab
