#include "backends/reference/trellis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/interface/trellis.h"
#include "backends/interface/trellis_scale.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::reference {
namespace {

// One step of the trellis: its numbers in units of scale / kTrellisUnit and what it may decode to.
struct Step {
  int32_t bits = 0;
  int32_t count = 0;  // coordinates; a last step may have fewer than others
  const int8_t (*table)[kTrellisWindows] = nullptr;
  std::array<int32_t, 2> numbers = {};
};

int64_t cost_of(const Step& step, int32_t window) {
  int64_t cost = 0;
  for (int32_t v = 0; v < step.count; ++v) {
    const int64_t distance = step.numbers[static_cast<size_t>(v)] - int64_t{step.table[v][window]};
    cost += distance * distance;
  }
  return cost;
}

int32_t rounded(double number) {
  const double largest = kTrellisLargest;
  return static_cast<int32_t>(std::clamp(std::nearbyint(number), -largest, largest));
}

// Chooses the group's scale and appends its steps.
Status add_steps(const ScaleGroup& group, const float* latent, std::byte* scales, std::vector<Step>& steps) {
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
    Step& step = steps.emplace_back(Step{group.bits, std::min(group.step, group.count - i), rate.table, {}});
    for (int32_t v = 0; v < step.count; ++v) {
      step.numbers[static_cast<size_t>(v)] = rounded(static_cast<double>(latent[group.first + i + v]) * factor);
    }
  }
  return absl::OkStatus();
}

// The windows of the cheapest string, which starts from window 0. Of equal ones the lower window before wins, and at the
// end the lower window.
std::vector<int32_t> cheapest_windows(const std::vector<Step>& steps) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  std::vector<int64_t> costs(kTrellisWindows, kNever);
  std::vector<int64_t> next(kTrellisWindows);
  costs[0] = 0;
  std::vector<std::array<uint8_t, kTrellisWindows>> before(steps.size());
  for (size_t n = 0; n < steps.size(); ++n) {
    const int32_t kept = kTrellisWindowBits - steps[n].bits;  // bits of the window before that stay
    for (int32_t window = 0; window < kTrellisWindows; ++window) {
      const int32_t first = (window & ((1 << kept) - 1)) << steps[n].bits;
      const auto candidates = costs.begin() + first;
      const auto best = std::min_element(candidates, candidates + (1 << steps[n].bits));
      before[n][static_cast<size_t>(window)] = static_cast<uint8_t>(best - costs.begin());
      next[static_cast<size_t>(window)] = *best + cost_of(steps[n], window);
    }
    costs.swap(next);
  }
  std::vector<int32_t> windows(steps.size());
  auto window = static_cast<int32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  for (size_t n = steps.size(); n-- > 0;) {
    windows[n] = window;
    window = before[n][static_cast<size_t>(window)];
  }
  return windows;
}

int64_t steps_of(const ScaleGroup& group) { return divide_up(group.count, group.step); }

}  // namespace

std::span<const ScaleGroup> trellis_run(const LatentPlane& plane, size_t first) {
  size_t end = first + 1;
  while (end < plane.scale_groups.size() && plane.scale_groups[end].continues) ++end;
  return {plane.scale_groups.data() + first, end - first};
}

Status encode_trellis(std::span<const ScaleGroup> run, const float* latent, std::byte* codes, std::byte* scales) {
  std::vector<Step> steps;
  for (const ScaleGroup& group : run) FOLDKV_RETURN_IF_ERROR(add_steps(group, latent, scales, steps));
  const std::vector<int32_t> windows = cheapest_windows(steps);
  size_t n = 0;
  for (const ScaleGroup& group : run) {
    std::byte* const bytes = codes + group.byte_offset;
    std::fill_n(bytes, divide_up(steps_of(group) * group.bits, 8), std::byte{0});
    for (int64_t step = 0; step < steps_of(group); ++step, ++n) {
      const int32_t added = windows[n] >> (kTrellisWindowBits - group.bits);
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
