#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"

namespace foldkv {

// Copies rows of the exact region of one layer, slots [first, first + output.row_count), page by page.
[[nodiscard]] Status read_exact_rows(const Sequence& sequence, int64_t layer, backend::Side side, int64_t first,
                                     const MutableTensorView& output);

// Tokens [first, first + count) of stacked rows, as f32: output [count][rows.width()], memory of any kind that convert
// takes.
[[nodiscard]] Status read_stacked_rows(backend::Backend& backend, const backend::StackedRows& rows, int64_t first,
                                       int64_t count, float* output);

// The other way. Numeric error where a number is not finite in the region's format; rows before it are written then.
[[nodiscard]] Status write_exact_rows(Sequence& sequence, int64_t layer, backend::Side side, int64_t first,
                                      const TensorView& input);

}  // namespace foldkv
