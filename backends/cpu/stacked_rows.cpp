#include "backends/cpu/stacked_rows.h"

namespace foldkv::backend::cpu {

void gather_stacked_row(const Kernels& kernels, const StackedRows& rows, int64_t token, const float* mean,
                        float* output) {
  const int64_t slot = rows.slot(token);
  const int64_t offset = rows.layout.side_offset(rows.side) + slot % rows.layout.page_tokens * rows.layout.row_bytes();
  float* part = output;
  for (const ExactRegion& layer : rows.layers) {
    kernels.to_f32(rows.layout.format, layer.pages[slot / rows.layout.page_tokens] + offset, rows.layout.width, part);
    part += rows.layout.width;
  }
  if (mean != nullptr) kernels.subtract(output, mean, rows.width(), output);
}

}  // namespace foldkv::backend::cpu
