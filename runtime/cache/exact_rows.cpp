#include "runtime/cache/exact_rows.h"

#include <algorithm>

#include "absl/functional/function_ref.h"

namespace foldkv {
namespace {

// Calls visit with the rows of each page that slots [first, first + count) lie in, and the number of rows before them.
Status for_each_page(const Sequence& sequence, int64_t layer, backend::Side side, int64_t first, int64_t count,
                     absl::FunctionRef<Status(const MutableTensorView& rows, int64_t before)> visit) {
  const backend::ExactLayout& layout = sequence.storage().exact_layout(layer);
  const PageList& pages = sequence.storage().exact_pages(layer);
  for (int64_t done = 0; done < count;) {
    const int64_t slot = first + done;
    const int64_t row = slot % layout.page_tokens;
    const int64_t run = std::min(count - done, layout.page_tokens - row);
    FOLDKV_RETURN_IF_ERROR(visit({pages.page_of(slot) + layout.side_offset(side) + row * layout.row_bytes(),
                                  layout.format, run, layout.width, layout.width},
                                 done));
    done += run;
  }
  return absl::OkStatus();
}

}  // namespace

Status read_exact_rows(const Sequence& sequence, int64_t layer, backend::Side side, int64_t first,
                       const MutableTensorView& output) {
  return for_each_page(sequence, layer, side, first, output.row_count,
                       [&](const MutableTensorView& rows, int64_t before) {
                         const MutableTensorView target{output.row(before), output.format, rows.row_count,
                                                        output.column_count, output.row_stride};
                         return sequence.runtime().backend().convert(rows, target);
                       });
}

Status write_exact_rows(Sequence& sequence, int64_t layer, backend::Side side, int64_t first, const TensorView& input) {
  return for_each_page(sequence, layer, side, first, input.row_count,
                       [&](const MutableTensorView& rows, int64_t before) {
                         return sequence.runtime().backend().convert(input.rows(before, rows.row_count), rows);
                       });
}

}  // namespace foldkv
