#include "runtime/cache/exact_rows.h"

#include <algorithm>

#include "absl/functional/function_ref.h"

namespace foldkv {
namespace {

// Calls visit with the rows of each page that slots [first, first + count) lie in, and the number of rows before them.
Status for_each_page(const backend::ExactLayout& layout, std::byte* const* pages, backend::Side side, int64_t first,
                     int64_t count, absl::FunctionRef<Status(const MutableTensorView& rows, int64_t before)> visit) {
  for (int64_t done = 0; done < count;) {
    const int64_t slot = first + done;
    const int64_t row = slot % layout.page_tokens;
    const int64_t run = std::min(count - done, layout.page_tokens - row);
    FOLDKV_RETURN_IF_ERROR(
        visit({pages[slot / layout.page_tokens] + layout.side_offset(side) + row * layout.row_bytes(), layout.format,
               run, layout.width, layout.width},
              done));
    done += run;
  }
  return absl::OkStatus();
}

Status read_pages(backend::Backend& backend, const backend::ExactLayout& layout, std::byte* const* pages,
                  int64_t first_number, backend::Side side, int64_t first, const MutableTensorView& output) {
  return for_each_page(
      layout, pages, side, first, output.row_count, [&](const MutableTensorView& rows, int64_t before) {
        return backend.convert(rows.columns(first_number, output.column_count), output.rows(before, rows.row_count));
      });
}

// How many of the next `most` tokens of the rows lie one after the other.
int64_t adjacent_slots(const backend::StackedRows& rows, int64_t first, int64_t most) {
  if (rows.slots == nullptr) return most;
  int64_t count = 1;
  while (count < most && rows.slots[first + count] == rows.slots[first] + count) ++count;
  return count;
}

}  // namespace

Status read_heads(const Sequence& sequence, int64_t layer, HeadRange heads, backend::Side side, int64_t first,
                  const MutableTensorView& rows) {
  const int64_t head_size = sequence.model().layer(layer).head_size;
  const int64_t end = heads.first + heads.count;
  for (int64_t head = heads.first; head < end;) {
    const ExactPlane& plane = sequence.storage().plane_of(layer, head);
    const int64_t count = std::min(end, int64_t{plane.first_head} + plane.head_count) - head;
    FOLDKV_RETURN_IF_ERROR(read_pages(sequence.runtime().backend(), plane.layout, plane.pages.pages(),
                                      (head - plane.first_head) * head_size, side, first,
                                      rows.columns((head - heads.first) * head_size, count * head_size)));
    head += count;
  }
  return absl::OkStatus();
}

Status write_rows(Sequence& sequence, int64_t layer, backend::Side side, int64_t first, const TensorView& rows) {
  const int64_t head_size = sequence.model().layer(layer).head_size;
  for (const ExactPlane& plane : sequence.storage().planes_of(layer)) {
    const TensorView input = rows.columns(plane.first_head * head_size, plane.layout.width);
    FOLDKV_RETURN_IF_ERROR(for_each_page(plane.layout, plane.pages.pages(), side, first, rows.row_count,
                                         [&](const MutableTensorView& target, int64_t before) {
                                           return sequence.runtime().backend().convert(
                                               input.rows(before, target.row_count), target);
                                         }));
  }
  return absl::OkStatus();
}

Status read_stacked_rows(backend::Backend& backend, const backend::StackedRows& rows, int64_t first, int64_t count,
                         float* output) {
  for (int64_t done = 0; done < count;) {
    const int64_t run = adjacent_slots(rows, first + done, count - done);
    float* part = output + done * rows.width();
    for (const backend::ExactRegion& layer : rows.layers) {
      const MutableTensorView view{reinterpret_cast<std::byte*>(part), NumberFormat::kF32, run, rows.layout.width,
                                   rows.width()};
      FOLDKV_RETURN_IF_ERROR(
          read_pages(backend, rows.layout, layer.pages, 0, rows.side, rows.slot(first + done), view));
      part += rows.layout.width;
    }
    done += run;
  }
  return absl::OkStatus();
}

}  // namespace foldkv
