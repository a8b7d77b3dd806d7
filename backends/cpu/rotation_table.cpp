#include "backends/cpu/rotation_table.h"

#include <array>
#include <cmath>

namespace foldkv::backend::cpu {
namespace {

// 128^4 * 8 = 2^31
constexpr std::array<int64_t, kRotationLevels> kDigits = {kRotationDigit, kRotationDigit, kRotationDigit,
                                                          kRotationDigit, 8};

struct Angles {
  float cosine;
  float sine;
};

Angles angles_of(double angle, double scale) {
  return {static_cast<float>(scale * std::cos(angle)), static_cast<float>(scale * std::sin(angle))};
}

void write_low_digit(const Rotation& rotation, float* cosines, float* sines) {
  for (int64_t pair = 0; pair < rotation.frequency_count; ++pair) {
    for (int64_t column = 0; column < kRotationColumns; ++column) {
      const auto digit = static_cast<double>(column % kRotationDigit);
      const Angles angles = angles_of(digit * rotation.inverse_frequencies[pair], rotation.scale);
      cosines[pair * kRotationColumns + column] = angles.cosine;
      sines[pair * kRotationColumns + column] = angles.sine;
    }
  }
}

void write_level(const Rotation& rotation, int64_t digits, double unit, double scale, float* cosines, float* sines) {
  for (int64_t digit = 0; digit < digits; ++digit) {
    for (int64_t pair = 0; pair < rotation.frequency_count; ++pair) {
      const double position = static_cast<double>(digit) * unit;
      const Angles angles = angles_of(position * rotation.inverse_frequencies[pair], scale);
      cosines[digit * rotation.frequency_count + pair] = angles.cosine;
      sines[digit * rotation.frequency_count + pair] = angles.sine;
    }
  }
}

}  // namespace

int64_t rotation_table_bytes(int64_t pairs) {
  int64_t columns = kRotationColumns;
  for (const int64_t digits : kDigits) columns += digits;
  return columns * pairs * 2 * static_cast<int64_t>(sizeof(float));
}

RotationTable rotation_table(const Rotation& rotation) {
  RotationTable table;
  table.pairs = rotation.frequency_count;
  table.interleaved = rotation.pairing == Pairing::kInterleaved;
  if (table.pairs == 0) return table;
  const auto* next = reinterpret_cast<const float*>(rotation.prepared);
  const auto take = [&next, &table](int64_t count) {
    const float* taken = next;
    next += count * table.pairs;
    return taken;
  };
  table.low_cosines = take(kRotationColumns);
  table.low_sines = take(kRotationColumns);
  for (size_t level = 0; level < kDigits.size(); ++level) {
    table.row_cosines[level] = take(kDigits[level]);
    table.row_sines[level] = take(kDigits[level]);
  }
  return table;
}

void write_rotation_table(const Rotation& rotation, std::byte* memory) {
  Rotation prepared = rotation;
  prepared.prepared = memory;
  const RotationTable table = rotation_table(prepared);
  const auto writable = [](const float* numbers) { return const_cast<float*>(numbers); };
  write_low_digit(rotation, writable(table.low_cosines), writable(table.low_sines));
  double unit = 1.0;
  for (size_t level = 0; level < kDigits.size(); ++level) {
    write_level(rotation, kDigits[level], unit, level == 0 ? rotation.scale : 1.0, writable(table.row_cosines[level]),
                writable(table.row_sines[level]));
    unit *= static_cast<double>(kRotationDigit);
  }
}

}  // namespace foldkv::backend::cpu
