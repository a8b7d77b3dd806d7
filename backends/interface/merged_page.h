#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/interface/layout.h"

// Merged heads in their page: MiniCache (arXiv 2405.14366; methods.md section 6). The direction that two layers share
// is the spherical interpolation of their own; the tokens whose directions are farthest apart are retained. Which those
// are is decided page by page, so that a page stands alone and memory is known beforehand.
namespace foldkv::backend {

inline constexpr int64_t kMostMergedTokens = 64;  // of a page

// Of the two layers' rows of one head.
struct MergedHead {
  double norms[2] = {0.0, 0.0};
  double cosine = 0.0;      // between them; 0 when one of them is zero
  double weights[2] = {};   // direction = weights[0] * first + weights[1] * second
};

[[nodiscard]] inline MergedHead merge_head(const float* first, const float* second, int64_t head_size,
                                           double interpolation) {
  MergedHead merged;
  double product = 0.0;
  for (int64_t i = 0; i < head_size; ++i) {
    const auto a = static_cast<double>(first[i]);
    const auto b = static_cast<double>(second[i]);
    merged.norms[0] += a * a;
    merged.norms[1] += b * b;
    product += a * b;
  }
  for (double& norm : merged.norms) norm = std::sqrt(norm);
  if (merged.norms[0] > 0.0 && merged.norms[1] > 0.0) {
    merged.cosine = std::clamp(product / (merged.norms[0] * merged.norms[1]), -1.0, 1.0);
  }
  // Where the angle's sine says nothing the interpolation is linear.
  constexpr double kFlat = 1e-6;
  const double angle = std::acos(merged.cosine);
  const double sine = std::sin(angle);
  const bool flat = sine < kFlat;
  const double shares[2] = {flat ? 1.0 - interpolation : std::sin((1.0 - interpolation) * angle) / sine,
                            flat ? interpolation : std::sin(interpolation * angle) / sine};
  for (int side = 0; side < 2; ++side) {
    merged.weights[side] = merged.norms[side] > 0.0 ? shares[side] / merged.norms[side] : 0.0;
  }
  return merged;
}

namespace merged_page {

[[nodiscard]] inline bool store_half(double number, std::byte* place, int64_t index) {
  const uint16_t half = f16_from_f32(static_cast<float>(number));
  std::memcpy(place + index * 2, &half, sizeof half);
  return std::isfinite(f32_from_f16(half));
}

[[nodiscard]] inline float load_half(const std::byte* place, int64_t index) {
  uint16_t half = 0;
  std::memcpy(&half, place + index * 2, sizeof half);
  return f32_from_f16(half);
}

// Direction and norms of one head of one token; the cosine goes into cosines[token].
[[nodiscard]] inline bool write_head(const LatentPlane& plane, int64_t token, int64_t head, const float* row,
                                     std::byte* page, double* cosines) {
  const MergedHeads& rules = plane.merged;
  const float* const first = row + head * rules.head_size;
  const float* const second = first + plane.width;
  const MergedHead merged =
      merge_head(first, second, rules.head_size, static_cast<double>(rules.interpolation));
  cosines[token] = merged.cosine;
  std::byte* const direction = page + plane.codes_offset + token * plane.code_bytes;
  bool stored = true;
  for (int64_t i = 0; i < rules.head_size; ++i) {
    const double number =
        merged.weights[0] * static_cast<double>(first[i]) + merged.weights[1] * static_cast<double>(second[i]);
    stored = store_half(number, direction, head * rules.head_size + i) && stored;
  }
  std::byte* const norms = page + rules.norms_offset + token * rules.layers * rules.heads * 2;
  for (int64_t layer = 0; layer < 2; ++layer) {
    stored = store_half(merged.norms[layer], norms, layer * rules.heads + head) && stored;
  }
  return stored;
}

// Keeps the rows of one head of one token in place `index` of the retained ones.
[[nodiscard]] inline bool retain(const LatentPlane& plane, int64_t token, int64_t head, int64_t index, const float* row,
                                 std::byte* page) {
  const MergedHeads& rules = plane.merged;
  const int64_t place = head * rules.retained + index;
  page[rules.slots_offset + place] = static_cast<std::byte>(token);
  std::byte* const rows = page + rules.rows_offset + place * rules.layers * rules.head_size * 2;
  bool stored = true;
  for (int64_t layer = 0; layer < rules.layers; ++layer) {
    const float* const numbers = row + layer * plane.width + head * rules.head_size;
    for (int64_t i = 0; i < rules.head_size; ++i) {
      stored = store_half(static_cast<double>(numbers[i]), rows, layer * rules.head_size + i) && stored;
    }
  }
  return stored;
}

}  // namespace merged_page

// A whole page of tokens, rows [page_tokens][2 * plane.width]: the first layer's numbers, then the second's. Of each
// head the tokens with the smallest cosines are retained, of equal ones the lower slot. False: something is beyond f16.
[[nodiscard]] inline bool write_merged_page(const LatentPlane& plane, int64_t page_tokens, const float* rows,
                                            std::byte* page) {
  const int64_t stride = plane.merged.layers * plane.width;
  bool stored = true;
  for (int64_t head = 0; head < plane.merged.heads; ++head) {
    double cosines[kMostMergedTokens];
    for (int64_t token = 0; token < page_tokens; ++token) {
      stored = merged_page::write_head(plane, token, head, rows + token * stride, page, cosines) && stored;
    }
    for (int64_t index = 0; index < plane.merged.retained; ++index) {
      const int64_t token = std::min_element(cosines, cosines + page_tokens) - cosines;
      cosines[token] = 2.0;  // taken
      stored = merged_page::retain(plane, token, head, index, rows + token * stride, page) && stored;
    }
  }
  return stored;
}

// Numbers of one head, layer and token, written to output[i * stride]. The product of two halves is exact in f32.
template <typename Number>
void read_merged_head(const LatentPlane& plane, const std::byte* page, int64_t token, int64_t layer, int64_t head,
                      Number* output, int64_t stride) {
  const MergedHeads& rules = plane.merged;
  const std::byte* numbers = page + plane.codes_offset + token * plane.code_bytes + head * rules.head_size * 2;
  float norm = merged_page::load_half(page + rules.norms_offset,
                                      (token * rules.layers + layer) * rules.heads + head);
  for (int64_t place = head * rules.retained; place < (head + 1) * rules.retained; ++place) {
    if (std::to_integer<int64_t>(page[rules.slots_offset + place]) != token) continue;
    numbers = page + rules.rows_offset + (place * rules.layers + layer) * rules.head_size * 2;
    norm = 1.0f;
  }
  for (int64_t i = 0; i < rules.head_size; ++i) {
    output[i * stride] = static_cast<Number>(norm * merged_page::load_half(numbers, i));
  }
}

}  // namespace foldkv::backend
