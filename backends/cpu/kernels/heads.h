#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

// Norm and rotation of heads that lie in rows, and the angles of a rotation.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// head = head * gain / sqrt(mean(head^2) + epsilon). Squares are summed in double precision: no finite head overflows.
void norm_head(const float* gain, double epsilon, int64_t head_size, float* head) {
  Double squares = {};
  int64_t i = 0;
  for (; i + kWideLanes <= head_size; i += kWideLanes) {
    const Double x = load_as_wide(head + i);
    squares = multiply_add_wide(x, x, squares);
  }
  double sum = sum_of_wide_lanes(squares);
  for (; i < head_size; ++i) sum += static_cast<double>(head[i]) * static_cast<double>(head[i]);
  const double inverse = 1.0 / __builtin_sqrt(sum / static_cast<double>(head_size) + epsilon);
  for (i = 0; i < head_size; ++i) {
    head[i] = static_cast<float>(static_cast<double>(head[i]) * inverse) * gain[i];
  }
}

struct Angle {
  Float cosine;
  Float sine;
};

// The angle of high plus the angle of low. One place only, so that a position has the same angle wherever it is asked.
FOLDKV_INLINE Angle add_angles(Angle low, Angle high) {
  const Float ss = low.sine * high.sine;
  const Float sc = low.sine * high.cosine;
  return {multiply_add(low.cosine, high.cosine, -ss), multiply_add(low.cosine, high.sine, sc)};
}

FOLDKV_INLINE Angle load_angle(const float* cosines, const float* sines, int64_t count) {
  if (count >= kLanes) return {load(cosines), load(sines)};
  return {load_some<NumberFormat::kF32>(reinterpret_cast<const std::byte*>(cosines), count),
          load_some<NumberFormat::kF32>(reinterpret_cast<const std::byte*>(sines), count)};
}

// Angles of the digits above the lowest, for pairs [pair, pair + count).
FOLDKV_INLINE Angle high_angle(const RotationTable& table, uint32_t position, int64_t pair, int64_t count) {
  Angle angle = {broadcast(1.0f), Float{}};
  int64_t rest = position / kRotationDigit;
  for (int64_t level = 1; rest != 0; ++level, rest /= kRotationDigit) {
    const int64_t at = (rest % kRotationDigit) * table.pairs + pair;
    angle = add_angles(load_angle(table.row_cosines[level] + at, table.row_sines[level] + at, count), angle);
  }
  return angle;
}

void rotation_row(const RotationTable& table, int32_t position, float* cosines, float* sines) {
  const auto unsigned_position = static_cast<uint32_t>(position);
  const int64_t low = unsigned_position % kRotationDigit * table.pairs;
  for (int64_t pair = 0; pair < table.pairs; pair += kLanes) {
    const int64_t count = table.pairs - pair;
    const Angle high = high_angle(table, unsigned_position, pair, count);
    const int64_t at = low + pair;
    const Angle angle = add_angles(load_angle(table.row_cosines[0] + at, table.row_sines[0] + at, count), high);
    store_some(cosines + pair, angle.cosine, count);
    store_some(sines + pair, angle.sine, count);
  }
}

// (a, b) turned by an angle.
FOLDKV_INLINE void rotate_pair(Float& a, Float& b, Angle angle) {
  const Float bs = b * angle.sine;
  const Float bc = b * angle.cosine;
  const Float turned = multiply_add(a, angle.cosine, -bs);
  b = multiply_add(a, angle.sine, bc);
  a = turned;
}

void rotate_row(const RotationTable& table, const float* cosines, const float* sines, float* head) {
  for (int64_t pair = 0; pair < table.pairs; pair += kLanes) {
    const int64_t count = table.pairs - pair < kLanes ? table.pairs - pair : kLanes;
    float a[kLanes] = {};
    float b[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = table.interleaved ? 2 * (pair + i) : pair + i;
      a[i] = head[first];
      b[i] = head[table.interleaved ? first + 1 : first + table.pairs];
    }
    Float turned_a = load(a);
    Float turned_b = load(b);
    rotate_pair(turned_a, turned_b, load_angle(cosines + pair, sines + pair, count));
    store(a, turned_a);
    store(b, turned_b);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = table.interleaved ? 2 * (pair + i) : pair + i;
      head[first] = a[i];
      head[table.interleaved ? first + 1 : first + table.pairs] = b[i];
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
