#include "backends/reference/latent_token.h"

#include <algorithm>

#include "backends/reference/basis.h"
#include "backends/reference/latent_row.h"
#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {
namespace {

void add_correction(const LatentSlice& slice, const uint16_t* coefficients, double* row) {
  const int64_t rank = slice.layout->correction_rank;
  for (int64_t i = 0; i < slice.row_count; ++i) {
    for (int64_t j = 0; j < rank; ++j) {
      row[i] += double_from_f16(slice.correction_basis[i * rank + j]) * double_from_f16(coefficients[j]);
    }
  }
}

// Without a basis a latent is the stacked row, or the row of one layer after the other.
void read_rows(const LatentSlice& slice, const std::byte* page, int64_t token, double* latent, double* row) {
  const LatentPlane& plane = slice.plane();
  if (slice.basis != nullptr) {
    read_latent(plane, page, token, latent);
    expand(slice.basis, slice.row_count, plane.width, plane.stored_width, latent, row);
    return;
  }
  for (int64_t done = 0; done < slice.row_count;) {
    const int64_t first = plane.coordinate_of(slice.first_row + done);
    const int64_t count = std::min(slice.row_count - done, plane.width - first);
    read_latent(plane, page, token, latent, (slice.first_row + done) / plane.width);
    std::copy_n(latent + first, count, row + done);
    done += count;
  }
}

}  // namespace

LatentSlice latent_slice(const LatentLayout& layout, const LatentRegion& region, Side side, const float* basis,
                         int64_t first_row, int64_t row_count, bool corrected) {
  const uint16_t* const mean = side == Side::kKeys ? region.key_mean : region.value_mean;
  LatentSlice slice{&layout, side, basis, first_row, row_count, mean, nullptr};
  if (slice.mean != nullptr) slice.mean += first_row;
  if (corrected && side == Side::kKeys && region.correction_basis != nullptr) {
    slice.correction_basis = region.correction_basis + first_row * layout.correction_rank;
  }
  return slice;
}

uint16_t* coefficients_of(const LatentLayout& layout, std::byte* const* pages, int64_t slot) {
  std::byte* const page = pages[slot / layout.page_tokens];
  return reinterpret_cast<uint16_t*>(page + layout.coefficients_offset) +
         slot % layout.page_tokens * layout.correction_rank;
}

void rebuild_token(const LatentSlice& slice, std::byte* const* pages, int64_t slot, double* latent, double* row) {
  read_rows(slice, pages[slot / slice.layout->page_tokens], slot % slice.layout->page_tokens, latent, row);
  if (slice.mean != nullptr) {
    for (int64_t i = 0; i < slice.row_count; ++i) row[i] += double_from_f16(slice.mean[i]);
  }
  if (slice.correction_basis != nullptr) add_correction(slice, coefficients_of(*slice.layout, pages, slot), row);
}

}  // namespace foldkv::backend::reference
