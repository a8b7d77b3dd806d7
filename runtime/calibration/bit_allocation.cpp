#include "runtime/calibration/bit_allocation.h"

#include <algorithm>
#include <cstddef>

namespace foldkv {
namespace {

constexpr int32_t kNone = -1;

struct Raise {
  int32_t choice = kNone;  // kNone: no raise fits
  double bits = 0.0;
  double fall_per_bit = 0.0;
};

class Allocation {
 public:
  Allocation(const std::vector<AllocationUnit>& units, double budget)
      : units_(units), budget_(budget), chosen_(units.size(), kNone), raises_(units.size()) {
    for (size_t unit = 0; unit < units.size(); ++unit) {
      if (!units[unit].stored) continue;
      chosen_[unit] = 0;
      budget_ -= units[unit].choices.front().bits;
    }
    for (size_t unit = 0; unit < units.size(); ++unit) raises_[unit] = best_raise(unit);
  }

  std::vector<int32_t> run() {
    while (true) {
      const size_t unit = steepest();
      if (unit == units_.size()) return chosen_;
      if (raises_[unit].bits > budget_) {  // fitted when it was looked for
        raises_[unit] = best_raise(unit);
        continue;
      }
      budget_ -= raises_[unit].bits;
      chosen_[unit] = raises_[unit].choice;
      raises_[unit] = best_raise(unit);
      if (unit + 1 < units_.size() && units_[unit + 1].after_previous) raises_[unit + 1] = best_raise(unit + 1);
    }
  }

 private:
  [[nodiscard]] Raise best_raise(size_t unit) const {
    const AllocationUnit& source = units_[unit];
    const int32_t current = chosen_[unit];
    const double bits = current == kNone ? 0.0 : source.choices[static_cast<size_t>(current)].bits;
    const double distortion = current == kNone ? 1.0 : source.choices[static_cast<size_t>(current)].distortion;
    auto last = static_cast<int32_t>(source.choices.size()) - 1;
    if (source.after_previous) last = std::min(last, chosen_[unit - 1]);
    Raise best;
    for (int32_t choice = current + 1; choice <= last; ++choice) {
      const RateChoice& rate = source.choices[static_cast<size_t>(choice)];
      const double more = rate.bits - bits;
      const double fall = source.cost * (distortion - rate.distortion) / more;
      if (more <= budget_ && fall > best.fall_per_bit) best = {choice, more, fall};
    }
    return best;
  }

  [[nodiscard]] size_t steepest() const {
    size_t best = units_.size();
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      if (raises_[unit].choice == kNone) continue;
      if (best == units_.size() || raises_[unit].fall_per_bit > raises_[best].fall_per_bit) best = unit;
    }
    return best;
  }

  const std::vector<AllocationUnit>& units_;
  double budget_;
  std::vector<int32_t> chosen_;
  std::vector<Raise> raises_;
};

}  // namespace

std::vector<int32_t> allocate_bits(const std::vector<AllocationUnit>& units, double budget) {
  return Allocation(units, budget).run();
}

}  // namespace foldkv
