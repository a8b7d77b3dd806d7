#pragma once

#include <cstdint>

#include "runtime/cache/attention_record.h"
#include "runtime/policy/token_statistics.h"

// What the prompt's last rows gave each token of a layer, from the queries that a record kept. No token has been evicted
// or compressed yet.
namespace foldkv {

struct WindowShape {
  int64_t rows = 0;
  int64_t tokens = 0;  // of the sequence, the new ones included
};

// Of the memory that the call below works in, enough for every layer; 0 when the policy looks at no window.
[[nodiscard]] int64_t window_workspace(const backend::Backend& backend, const PreparedModel& model,
                                       const PreparedProfile& profile, const SequencePolicy& policy,
                                       const WindowShape& shape);

// positions: of the window's rows, host.
[[nodiscard]] StatusOr<TokenStatistics> window_statistics(const Sequence& sequence, const AttentionRecord& record,
                                                          int64_t layer, const WindowShape& shape,
                                                          const int32_t* positions, std::byte* workspace);

}  // namespace foldkv
