#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace foldkv_lab {

// Product and sum of sizes that come from files; an error names `what` when 64 bits do not hold the result.
[[nodiscard]] inline absl::StatusOr<uint64_t> checked_product(std::initializer_list<uint64_t> factors,
                                                              absl::string_view what) {
  uint64_t product = 1;
  for (const uint64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      return absl::DataLossError(absl::StrCat(what, ": the product of sizes does not fit 64 bits"));
    }
  }
  return product;
}

[[nodiscard]] inline absl::StatusOr<uint64_t> checked_sum(std::initializer_list<uint64_t> terms,
                                                          absl::string_view what) {
  uint64_t sum = 0;
  for (const uint64_t term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) {
      return absl::DataLossError(absl::StrCat(what, ": the sum of sizes does not fit 64 bits"));
    }
  }
  return sum;
}

}  // namespace foldkv_lab
