#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/heads.h"
#include "backends/cpu/kernels/transpose.h"
#include "backends/cpu/kernels/vector.h"

// Rotation of tiles: 64 tokens in lanes.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// Tokens at positions first, first + 1, ...: the lowest digit's angles are adjacent in the table, and at most two
// values of the higher digits occur.
void rotation_of_run(const RotationTable& table, uint32_t first, float* scratch, float* cosines, float* sines) {
  constexpr auto kDigit = static_cast<uint32_t>(kRotationDigit);
  const uint32_t low = first % kDigit;
  const auto before_carry = static_cast<int32_t>(kDigit - low);
  float* high_cosines[2] = {scratch, scratch + kLargestHead / 2};
  float* high_sines[2] = {scratch + kLargestHead, scratch + kLargestHead / 2 * 3};
  for (int side = 0; side < 2; ++side) {
    const uint32_t position = (first / kDigit + static_cast<uint32_t>(side)) * kDigit;
    for (int64_t pair = 0; pair < table.pairs; pair += kLanes) {
      const Angle angle = high_angle(table, position, pair, table.pairs - pair);
      store_some(high_cosines[side] + pair, angle.cosine, table.pairs - pair);
      store_some(high_sines[side] + pair, angle.sine, table.pairs - pair);
    }
  }
  Int lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  for (int64_t pair = 0; pair < table.pairs; ++pair) {
    const int64_t at = pair * kRotationColumns + low;
    for (int token = 0; token < kTile; token += kLanes) {
      const auto first_side = lane + token < before_carry;
      const Angle high = {first_side ? broadcast(high_cosines[0][pair]) : broadcast(high_cosines[1][pair]),
                          first_side ? broadcast(high_sines[0][pair]) : broadcast(high_sines[1][pair])};
      const Angle angle = add_angles({load(table.low_cosines + at + token), load(table.low_sines + at + token)}, high);
      store(cosines + pair * kTile + token, angle.cosine);
      store(sines + pair * kTile + token, angle.sine);
    }
  }
}

void rotation_tile(const RotationTable& table, const int32_t* positions, float* scratch, float* cosines,
                   float* sines) {
  bool is_run = positions[0] <= INT32_MAX - kTile;
  for (int32_t token = 1; is_run && token < kTile; ++token) is_run = positions[token] == positions[0] + token;
  if (is_run) return rotation_of_run(table, static_cast<uint32_t>(positions[0]), scratch, cosines, sines);

  const int64_t stride = (table.pairs + kWidthPadding - 1) / kWidthPadding * kWidthPadding;
  float* sine_rows = scratch + kTile * stride;
  const std::byte* rows[2][kTile];
  for (int64_t token = 0; token < kTile; ++token) {
    float* cosine_row = scratch + token * stride;
    float* sine_row = sine_rows + token * stride;
    rotation_row(table, positions[token], cosine_row, sine_row);
    rows[0][token] = reinterpret_cast<const std::byte*>(cosine_row);
    rows[1][token] = reinterpret_cast<const std::byte*>(sine_row);
  }
  transpose_tile(NumberFormat::kF32, rows[0], table.pairs, cosines);
  transpose_tile(NumberFormat::kF32, rows[1], table.pairs, sines);
}

// head [head_size][64], in place
void rotate_tile(const RotationTable& table, const float* cosines, const float* sines, float* head) {
  const int64_t distance = table.interleaved ? kTile : table.pairs * kTile;
  const int64_t step = table.interleaved ? 2 * kTile : kTile;
  for (int64_t pair = 0; pair < table.pairs; ++pair) {
    float* first = head + pair * step;
    for (int token = 0; token < kTile; token += kLanes) {
      Float a = load(first + token);
      Float b = load(first + distance + token);
      rotate_pair(a, b, {load(cosines + pair * kTile + token), load(sines + pair * kTile + token)});
      store(first + token, a);
      store(first + distance + token, b);
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
