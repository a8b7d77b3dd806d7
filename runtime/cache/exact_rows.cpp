#include "runtime/cache/exact_rows.h"

#include <algorithm>

namespace foldkv {

Status read_exact_rows(const Sequence& sequence, int64_t layer, backend::Side side, int64_t first,
                       const MutableTensorView& output) {
  const backend::ExactLayout& layout = sequence.storage().exact_layout(layer);
  const PageList& pages = sequence.storage().exact_pages(layer);
  for (int64_t done = 0; done < output.row_count;) {
    const int64_t slot = first + done;
    const int64_t row = slot % layout.page_tokens;
    const int64_t run = std::min(output.row_count - done, layout.page_tokens - row);
    const TensorView source{pages.page_of(slot) + layout.side_offset(side) + row * layout.row_bytes(), layout.format,
                            run, layout.width, layout.width};
    const MutableTensorView target{output.row(done), output.format, run, output.column_count, output.row_stride};
    FOLDKV_RETURN_IF_ERROR(sequence.runtime().backend().convert(source, target));
    done += run;
  }
  return absl::OkStatus();
}

}  // namespace foldkv
