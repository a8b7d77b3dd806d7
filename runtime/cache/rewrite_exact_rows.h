#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "runtime/cache/sequence.h"

namespace foldkv {

// Exact slots of one layer, one side.
struct ExactRows {
  int64_t layer = 0;
  backend::Side side = backend::Side::kKeys;
  int64_t first_slot = 0;
  int64_t count = 0;
};

// The exact slots of tokens [first_token, first_token + count); state error where one of them is a latent.
[[nodiscard]] StatusOr<ExactRows> find_exact_rows(const Sequence& sequence, int64_t layer, backend::Side side,
                                                  int64_t first_token, int64_t count);

// Fills rows [first, first + rows.row_count) of those that are written, f32 in host memory; first counts from 0.
using FillRows = absl::FunctionRef<Status(int64_t first, const MutableTensorView& rows)>;

// Writes new numbers piece by piece, twice over: at first only to see that all of them are finite in the cache's
// format, so that on failure (numeric) nothing has changed. fill gives the same both times; what it reads of the rows
// to be written it sees unchanged.
[[nodiscard]] Status rewrite_exact_rows(Sequence& sequence, const ExactRows& target, FillRows fill);

}  // namespace foldkv
