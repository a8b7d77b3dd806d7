#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/codec.h"
#include "samples/lab/layer_numbers.h"
#include "samples/lab/option_list.h"
#include "samples/lab/token_budget.h"

namespace foldkv_lab {

// --policy, --keep, --keep-tokens, --layers: which eviction policies are compared.
struct PolicyArguments {
  std::vector<std::string> policies;  // or "all"
  std::vector<std::string> shares;
  std::vector<int64_t> tokens;
  std::string layers;  // a file of numbers of layers

  void add_to(OptionList& app);
  // Every policy at every budget on each of these codecs, in place of them; without policies these codecs themselves.
  // A policy that the library refuses is an error, under "all" it is left out with a note on the standard error.
  [[nodiscard]] absl::StatusOr<std::vector<Codec>> apply(FoldkvHost& host, std::vector<Codec> codecs) const;

 private:
  [[nodiscard]] bool all() const { return policies == std::vector<std::string>{"all"}; }
  [[nodiscard]] absl::Status check() const;
  [[nodiscard]] absl::StatusOr<std::vector<TokenBudget>> budgets() const;
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> names() const;
  [[nodiscard]] absl::Status add(FoldkvHost& host, const Codec& codec, const std::string& policy,
                                 const LayerNumbers& numbers, std::vector<Codec>* result) const;
};

}  // namespace foldkv_lab
