#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace foldkv {

// A share, exactly: 1000 * (1 - 0.9) is 99.99999999999997 in binary, and a token less than was meant (methods.md 9).
struct Ratio {
  int64_t numerator = 0;
  int64_t denominator = 1;

  bool operator==(const Ratio&) const = default;
};

// A share from 0 to 1 as it was written, to nine decimals: 1 - 0.9 is 1/10. Argument error that names `argument`.
[[nodiscard]] StatusOr<Ratio> make_ratio(absl::string_view argument, double share);

// The whole tokens within that share of `tokens`, 0 to 2^31. The only place where a ratio becomes a count.
[[nodiscard]] int64_t count_of(const Ratio& ratio, int64_t tokens);

// The tokens kept of `tokens` when `kept_always` of them are kept always (a count beyond `tokens` means all) and that
// share of the others (BellowsKV-Evict: golden/group_eviction.json).
[[nodiscard]] int64_t count_beside(const Ratio& ratio, int64_t tokens, int64_t kept_always);

}  // namespace foldkv
