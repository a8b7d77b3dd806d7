#include "backends/cpu/trellis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>

#include "backends/interface/trellis.h"
#include "backends/interface/trellis_scale.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kMostChoices = kTrellisWindows / 2;

// [rate][coordinate of the step][window]
using Tables = std::array<std::array<float, 2 * kTrellisWindows>, std::size(kTrellisRates)>;
constexpr Tables make_tables(bool decoded) {
  Tables tables = {};
  for (size_t rate = 0; rate < std::size(kTrellisRates); ++rate) {
    for (int32_t v = 0; v < kTrellisRates[rate].step; ++v) {
      for (int32_t window = 0; window < kTrellisWindows; ++window) {
        tables[rate][static_cast<size_t>(v * kTrellisWindows + window)] =
            decoded ? trellis_value(kTrellisRates[rate], v, window)
                    : static_cast<float>(kTrellisRates[rate].table[v][window]);
      }
    }
  }
  return tables;
}
constexpr Tables kIntegers = make_tables(false);
constexpr Tables kValues = make_tables(true);

const float* table_of(const Tables& tables, const ScaleGroup& group) {
  return tables[static_cast<size_t>(find_trellis_rate(group.bits, group.step) - kTrellisRates)].data();
}

int64_t steps_of(const ScaleGroup& group) { return divide_up(group.count, group.step); }

// Chooses the scale of one token's group and writes its numbers in units, one token of [coordinates][16].
bool scale_numbers(const ScaleGroup& group, const float* latents, uint8_t* scales, float* numbers) {
  double sum = 0.0;
  for (int32_t i = 0; i < group.count; ++i) {
    const auto number = static_cast<double>(latents[i]);
    sum += number * number;
  }
  const int byte = trellis_scale_byte(sum / group.count, group.spread);
  if (byte == kTrellisScaleTooLarge) return false;
  scales[group.scale_offset] = static_cast<uint8_t>(byte);
  const float scale = trellis_scale(static_cast<uint8_t>(byte), group.spread);
  const double factor = scale == 0.0f ? 0.0 : kTrellisUnit / static_cast<double>(scale);
  constexpr double kLargest = kTrellisLargest;
  for (int32_t i = 0; i < group.count; ++i) {
    const double units = std::nearbyint(static_cast<double>(latents[i]) * factor);
    numbers[i * kTrellisTokens] = static_cast<float>(std::clamp(units, -kLargest, kLargest));
  }
  return true;
}

// windows [steps][16]: the newest bits of each go into the string.
void write_codes(const ScaleGroup& group, const uint8_t* windows, uint8_t* codes) {
  uint32_t pending = 0;
  int count = 0;
  for (int64_t step = 0; step < steps_of(group); ++step) {
    pending |= static_cast<uint32_t>(windows[step * kTrellisTokens] >> (kTrellisWindowBits - group.bits)) << count;
    count += group.bits;
    if (count < 8) continue;
    *codes++ = static_cast<uint8_t>(pending);
    pending >>= 8;
    count -= 8;
  }
  if (count > 0) *codes = static_cast<uint8_t>(pending);
}

}  // namespace

const float* trellis_integers(const ScaleGroup& group) { return table_of(kIntegers, group); }
const float* trellis_values(const ScaleGroup& group) { return table_of(kValues, group); }

TrellisScratch TrellisScratch::take(Workspace& workspace, int64_t trellis_width) {
  TrellisScratch scratch;
  scratch.groups = workspace.take<TrellisGroup>(trellis_width);
  scratch.numbers = workspace.take<float>(trellis_width * kTrellisTokens);
  scratch.costs = workspace.take<float>(trellis_width == 0 ? 0 : 2 * kTrellisWindows * kTrellisTokens);
  scratch.choices = workspace.take<uint8_t>(trellis_width * kMostChoices * kTrellisTokens);
  scratch.windows = workspace.take<uint8_t>(trellis_width * kTrellisTokens);
  return scratch;
}

bool encode_trellis(const Kernels& kernels, std::span<const ScaleGroup> run, const float* latents, int64_t stride,
                    std::span<const TokenBytes> tokens, const TrellisScratch& scratch) {
  const int32_t first = run.front().first;
  const int64_t width = run.back().first + run.back().count - first;
  if (std::ssize(tokens) < kTrellisTokens) std::fill_n(scratch.numbers, width * kTrellisTokens, 0.0f);
  for (size_t index = 0; index < run.size(); ++index) {
    const ScaleGroup& group = run[index];
    scratch.groups[index] = {group.count, group.bits, group.step, trellis_integers(group)};
    for (size_t token = 0; token < tokens.size(); ++token) {
      float* numbers = scratch.numbers + (group.first - first) * kTrellisTokens + static_cast<int64_t>(token);
      const float* row = latents + static_cast<int64_t>(token) * stride + group.first;
      if (!scale_numbers(group, row, tokens[token].scales, numbers)) return false;
    }
  }
  kernels.trellis_search({.groups = scratch.groups,
                          .group_count = std::ssize(run),
                          .numbers = scratch.numbers,
                          .costs = scratch.costs,
                          .choices = scratch.choices,
                          .windows = scratch.windows});
  for (size_t token = 0; token < tokens.size(); ++token) {
    const uint8_t* windows = scratch.windows + token;
    for (const ScaleGroup& group : run) {
      write_codes(group, windows, tokens[token].codes + group.byte_offset);
      windows += steps_of(group) * kTrellisTokens;
    }
  }
  return true;
}

}  // namespace foldkv::backend::cpu
