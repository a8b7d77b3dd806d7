#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"

namespace foldkv {

// KV heads [first, first + count) of a layer.
struct HeadRange {
  int64_t first = 0;
  int64_t count = 0;
};

// Copies exact rows of these heads, slots [first, first + rows.row_count) of each. rows [tokens][count * head size].
[[nodiscard]] Status read_heads(const Sequence& sequence, int64_t layer, HeadRange heads, backend::Side side, int64_t first,
                                const MutableTensorView& rows);

// The other way, all heads of a layer. Numeric error where a number is not finite in the cache's format; rows before it
// are written then.
[[nodiscard]] Status write_rows(Sequence& sequence, int64_t layer, backend::Side side, int64_t first,
                                const TensorView& rows);

// Tokens [first, first + count) of stacked rows, as f32: output [count][rows.width()], memory of any kind that convert
// takes.
[[nodiscard]] Status read_stacked_rows(backend::Backend& backend, const backend::StackedRows& rows, int64_t first,
                                       int64_t count, float* output);

}  // namespace foldkv
