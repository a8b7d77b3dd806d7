#include "backends/reference/encode.h"

#include <algorithm>

#include "backends/interface/merged_page.h"
#include "backends/reference/basis.h"
#include "backends/reference/exact_row.h"
#include "backends/reference/latent_arrays.h"
#include "backends/reference/latent_row.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

namespace {

// The latent is rounded to f32 before it is quantized: from there on every backend has the same input.
void find_latent(const EncodeRequest& request, const LatentPlane& plane, int64_t token, const LatentArrays& arrays,
                 float* rounded) {
  const int64_t width = request.rows.width();
  read_stacked_row(request.rows, token, arrays.row);
  if (request.mean != nullptr) {
    for (int64_t i = 0; i < width; ++i) arrays.row[i] -= double_from_f16(request.mean[i]);
  }
  const double* latent = arrays.row;
  if (request.basis != nullptr) {
    project(request.basis, width, plane.width, plane.stored_width, arrays.row, arrays.latent);
    latent = arrays.latent;
  }
  for (int64_t i = 0; i < plane.stored_width; ++i) rounded[i] = static_cast<float>(latent[i]);
}

Status encode_token(const EncodeRequest& request, const LatentPlane& plane, int64_t token, const float* latent,
                    const LatentArrays& arrays) {
  const int64_t slot = request.first_latent_slot + token;
  const int64_t page_tokens = request.layout->page_tokens;
  return write_latent(plane, request.pages[slot / page_tokens], slot % page_tokens, latent, arrays.codes,
                      arrays.trellis);
}

// Runs of tokens that are encoded together: channel groups need a block, merged heads a page.
Status encode_run(const EncodeRequest& request, const LatentPlane& plane, int64_t first, int64_t count,
                  const LatentArrays& arrays) {
  const int64_t slot = request.first_latent_slot + first;
  const int64_t page_tokens = request.layout->page_tokens;
  std::byte* const page = request.pages[slot / page_tokens];
  if (plane.merged.layers > 0) {
    const int64_t width = request.rows.width();
    for (int64_t t = 0; t < count; ++t) {
      read_stacked_row(request.rows, first + t, arrays.row);
      std::transform(arrays.row, arrays.row + width, arrays.run + t * width,
                     [](double number) { return static_cast<float>(number); });
    }
    if (write_merged_page(plane, page_tokens, arrays.run, page)) return absl::OkStatus();
    return numeric_error("rows of merged heads are not finite or beyond f16");
  }
  for (int64_t t = 0; t < count; ++t) {
    float* const latent = arrays.run + t * plane.stored_width;
    find_latent(request, plane, first + t, arrays, latent);
    FOLDKV_RETURN_IF_ERROR(encode_token(request, plane, first + t, latent, arrays));
  }
  return plane.channel_bytes > 0 ? write_channels(plane, page, slot % page_tokens, arrays.run) : absl::OkStatus();
}

}  // namespace

Status encode(const EncodeRequest& request) {
  const LatentPlane& plane = request.layout->plane(request.rows.side);
  const int64_t run = plane.run_tokens(request.layout->page_tokens);
  Scratch scratch(request.workspace);
  const LatentArrays arrays =
      place_latent_arrays({.stacked_width = request.rows.width(),
                           .key_latent_width = plane.stored_width,
                           .value_latent_width = plane.stored_width,
                           .tokens = request.rows.count,
                           .trellis_width = plane.trellis_width(),
                           .run_tokens = run},
                          scratch);
  for (int64_t t = 0; t < request.rows.count; t += run) {
    FOLDKV_RETURN_IF_ERROR(encode_run(request, plane, t, run, arrays));
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
