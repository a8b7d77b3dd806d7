#include "backends/reference/trellis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backends/interface/trellis_scale.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::reference {
namespace {

int64_t cost_of(const TrellisStep& step, int32_t window) {
  int64_t cost = 0;
  for (int32_t v = 0; v < step.count; ++v) {
    const int64_t distance = int64_t{step.numbers[v]} - int64_t{step.table[v][window]};
    cost += distance * distance;
  }
  return cost;
}

int32_t rounded(double number) {
  const double largest = kTrellisLargest;
  return static_cast<int32_t>(std::clamp(std::nearbyint(number), -largest, largest));
}

int64_t steps_of(const ScaleGroup& group) { return divide_up(group.count, group.step); }

// Chooses the group's scale and writes its steps.
Status make_steps(const ScaleGroup& group, const float* latent, std::byte* scales, TrellisStep* steps) {
  double sum = 0.0;
  for (int32_t i = 0; i < group.count; ++i) {
    const auto number = static_cast<double>(latent[group.first + i]);
    sum += number * number;
  }
  const int byte = trellis_scale_byte(sum / group.count, group.spread);
  if (byte == kTrellisScaleTooLarge) {
    return numeric_error(absl::StrCat("latents of mean square ", sum / group.count, " need a scale beyond its grid"));
  }
  scales[group.scale_offset] = static_cast<std::byte>(byte);
  const float scale = trellis_scale(static_cast<uint8_t>(byte), group.spread);
  const double factor = scale == 0.0f ? 0.0 : kTrellisUnit / static_cast<double>(scale);
  const TrellisRate& rate = *find_trellis_rate(group.bits, group.step);
  for (int32_t i = 0; i < group.count; i += group.step) {
    TrellisStep& step = *steps++;
    step = {group.bits, std::min(group.step, group.count - i), rate.table, {}, 0};
    for (int32_t v = 0; v < step.count; ++v) {
      step.numbers[v] = rounded(static_cast<double>(latent[group.first + i + v]) * factor);
    }
  }
  return absl::OkStatus();
}

// Sets the windows of the cheapest string, which starts from window 0. Of equal ones the lower window before wins, and
// at the end the lower window.
void find_windows(const TrellisArrays& arrays, int64_t steps) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  int64_t* costs = arrays.costs;
  int64_t* next = arrays.costs + kTrellisWindows;
  std::fill_n(costs, kTrellisWindows, kNever);
  costs[0] = 0;
  for (int64_t n = 0; n < steps; ++n) {
    const TrellisStep& step = arrays.steps[n];
    const int32_t kept = kTrellisWindowBits - step.bits;  // bits of the window before that stay
    for (int32_t window = 0; window < kTrellisWindows; ++window) {
      const int64_t* const candidates = costs + ((window & ((1 << kept) - 1)) << step.bits);
      const int64_t* const best = std::min_element(candidates, candidates + (1 << step.bits));
      arrays.before[n * kTrellisWindows + window] = static_cast<uint8_t>(best - costs);
      next[window] = *best + cost_of(step, window);
    }
    std::swap(costs, next);
  }
  auto window = static_cast<int32_t>(std::min_element(costs, costs + kTrellisWindows) - costs);
  for (int64_t n = steps - 1; n >= 0; --n) {
    arrays.steps[n].window = window;
    window = arrays.before[n * kTrellisWindows + window];
  }
}

}  // namespace

TrellisArrays TrellisArrays::place(Scratch& scratch, int64_t trellis_width) {
  TrellisArrays arrays;
  arrays.steps = scratch.take<TrellisStep>(trellis_width);
  arrays.before = scratch.take<uint8_t>(trellis_width * kTrellisWindows);
  arrays.costs = scratch.take<int64_t>(trellis_width == 0 ? 0 : 2 * kTrellisWindows);
  return arrays;
}

Status encode_trellis(std::span<const ScaleGroup> run, const float* latent, const TrellisArrays& arrays,
                      std::byte* codes, std::byte* scales) {
  int64_t steps = 0;
  for (const ScaleGroup& group : run) {
    FOLDKV_RETURN_IF_ERROR(make_steps(group, latent, scales, arrays.steps + steps));
    steps += steps_of(group);
  }
  find_windows(arrays, steps);
  const TrellisStep* found = arrays.steps;
  for (const ScaleGroup& group : run) {
    std::byte* const bytes = codes + group.byte_offset;
    std::fill_n(bytes, divide_up(steps_of(group) * group.bits, 8), std::byte{0});
    for (int64_t step = 0; step < steps_of(group); ++step, ++found) {
      const int32_t added = found->window >> (kTrellisWindowBits - group.bits);
      for (int32_t bit = 0; bit < group.bits; ++bit) {
        const int64_t place = step * group.bits + bit;
        bytes[place / 8] |= static_cast<std::byte>(((added >> bit) & 1) << (place % 8));
      }
    }
  }
  return absl::OkStatus();
}

void decode_trellis(const ScaleGroup& group, const std::byte* codes, const std::byte* scales, double* latent) {
  const std::byte* const bytes = codes + group.byte_offset;
  const TrellisRate& rate = *find_trellis_rate(group.bits, group.step);
  const float scale = trellis_scale(std::to_integer<uint8_t>(scales[group.scale_offset]), group.spread);
  uint32_t window = group.continues ? std::to_integer<uint32_t>(bytes[-1]) : 0;
  for (int64_t step = 0; step < steps_of(group); ++step) {
    for (int32_t bit = 0; bit < group.bits; ++bit) {
      const int64_t place = step * group.bits + bit;
      const uint32_t added = std::to_integer<uint32_t>(bytes[place / 8]) >> (place % 8) & 1u;
      window = window >> 1 | added << (kTrellisWindowBits - 1);
    }
    for (int64_t v = 0; v < group.step && step * group.step + v < group.count; ++v) {
      const float value = trellis_value(rate, static_cast<int32_t>(v), static_cast<int32_t>(window));
      latent[group.first + step * group.step + v] = static_cast<double>(value * scale);
    }
  }
}

}  // namespace foldkv::backend::reference
