#include "runtime/cache/measure_energy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/number_format.h"
#include "runtime/cache/exact_rows.h"

namespace foldkv {
namespace {

constexpr int64_t kStretchTokens = 8;
constexpr int64_t kStretches = 8;
constexpr int64_t kPiece = 256;  // numbers that are compared at once

// The scratch: rows as they are and as rebuilt, [kStretchTokens][width] each.
struct Scratch {
  float* rows;
  float* rebuilt;
};

Scratch scratch_of(const EncodedRows& encoded) {
  auto* const numbers = reinterpret_cast<float*>(encoded.scratch);
  return {numbers, numbers + kStretchTokens * encoded.rows.width()};
}

Status rebuild_rows(backend::Backend& backend, const EncodedRows& encoded, int64_t first, int64_t count,
                    float* output) {
  backend::RebuildRequest request;
  request.layout = encoded.layout;
  request.region = encoded.region;
  request.side = encoded.rows.side;
  request.first = encoded.first_latent_slot + first;
  request.count = count;
  request.basis = encoded.basis;
  request.row_count = encoded.rows.width();
  request.output = output;
  request.workspace = encoded.workspace;
  return backend.rebuild(request);
}

template <typename Number>
Status to_host(backend::Backend& backend, const Number* device, int64_t count, std::array<Number, kPiece>& host) {
  return backend.copy_to_host(reinterpret_cast<std::byte*>(host.data()), reinterpret_cast<const std::byte*>(device),
                              count * static_cast<int64_t>(sizeof(Number)));
}

// One token, in pieces: device memory is read through a few numbers of the stack.
Status add_token(backend::Backend& backend, const EncodedRows& encoded, const float* row, const float* rebuilt,
                 SideEnergy& sum) {
  const uint16_t* const mean =
      encoded.rows.side == backend::Side::kKeys ? encoded.region.key_mean : encoded.region.value_mean;
  std::array<float, kPiece> row_piece;
  std::array<float, kPiece> rebuilt_piece;
  std::array<uint16_t, kPiece> mean_piece{};
  for (int64_t first = 0; first < encoded.rows.width(); first += kPiece) {
    const int64_t count = std::min(kPiece, encoded.rows.width() - first);
    FOLDKV_RETURN_IF_ERROR(to_host(backend, row + first, count, row_piece));
    FOLDKV_RETURN_IF_ERROR(to_host(backend, rebuilt + first, count, rebuilt_piece));
    if (mean != nullptr) FOLDKV_RETURN_IF_ERROR(to_host(backend, mean + first, count, mean_piece));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const auto number = static_cast<double>(row_piece[i]);
      const double from_mean = number - static_cast<double>(f32_from_f16(mean_piece[i]));
      const double from_rebuilt = number - static_cast<double>(rebuilt_piece[i]);
      sum.total += from_mean * from_mean;
      sum.lost += from_rebuilt * from_rebuilt;
    }
  }
  return absl::OkStatus();
}

Status add_stretch(backend::Backend& backend, const EncodedRows& encoded, int64_t first, int64_t count,
                   SideEnergy& sum) {
  const Scratch scratch = scratch_of(encoded);
  FOLDKV_RETURN_IF_ERROR(read_stacked_rows(backend, encoded.rows, first, count, scratch.rows));
  FOLDKV_RETURN_IF_ERROR(rebuild_rows(backend, encoded, first, count, scratch.rebuilt));
  for (int64_t token = 0; token < count; ++token) {
    const int64_t offset = token * encoded.rows.width();
    FOLDKV_RETURN_IF_ERROR(add_token(backend, encoded, scratch.rows + offset, scratch.rebuilt + offset, sum));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t energy_scratch_bytes(int64_t stacked_width) {
  return 2 * kStretchTokens * stacked_width * static_cast<int64_t>(sizeof(float));
}

StatusOr<SideEnergy> measure_energy(backend::Backend& backend, const EncodedRows& encoded) {
  const int64_t tokens = encoded.rows.count;
  SideEnergy sum;
  int64_t measured = 0;
  for (int64_t stretch = 0; stretch < kStretches; ++stretch) {
    // Short runs are measured whole; of long ones each stretch begins an equal part.
    const int64_t first = std::max(stretch * kStretchTokens, stretch * tokens / kStretches);
    const int64_t count = std::min(kStretchTokens, tokens - first);
    if (count <= 0) break;
    FOLDKV_RETURN_IF_ERROR(add_stretch(backend, encoded, first, count, sum));
    measured += count;
  }
  if (measured == 0 || !std::isfinite(sum.total) || !std::isfinite(sum.lost)) return SideEnergy{};
  const double scale = static_cast<double>(tokens) / static_cast<double>(measured);
  return SideEnergy{sum.total * scale, sum.lost * scale};
}

}  // namespace foldkv
