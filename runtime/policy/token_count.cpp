#include "runtime/policy/token_count.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foldkv {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

}  // namespace

StatusOr<Ratio> make_ratio(absl::string_view argument, double share) {
  if (!(share >= 0.0 && share <= 1.0)) {
    return argument_error(argument, absl::StrCat(argument, ": got ", share, ", expected 0 to 1"));
  }
  const int64_t billionths = std::llround(share * static_cast<double>(kBillion));
  const int64_t common = std::gcd(billionths, kBillion);
  return Ratio{billionths / common, kBillion / common};
}

int64_t count_of(const Ratio& ratio, int64_t tokens) { return tokens * ratio.numerator / ratio.denominator; }

int64_t count_beside(const Ratio& ratio, int64_t tokens, int64_t kept_always) {
  const int64_t always = std::min(tokens, kept_always);
  return always + count_of(ratio, tokens - always);
}

}  // namespace foldkv
