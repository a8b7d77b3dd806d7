#pragma once

#include <string>

#include "foldkv/foldkv.h"

namespace foldkv_lab {

// Shares of the energy of keys and of values that compression loses.
struct EnergyShares {
  double keys = 0;
  double values = 0;

  EnergyShares& operator+=(const EnergyShares& other) {
    keys += other.keys;
    values += other.values;
    return *this;
  }
  [[nodiscard]] EnergyShares operator*(double factor) const { return {keys * factor, values * factor}; }
};

[[nodiscard]] EnergyShares measured_energy(const foldkv_sequence_stats& stats);
[[nodiscard]] EnergyShares expected_energy(const foldkv_sequence_stats& stats);  // 0: the profile does not know

// A line that warns when the loss is more than kDriftFactor times what was expected, of keys or of values; else empty.
// text: what is compressed.
inline constexpr double kDriftFactor = 1.5;
[[nodiscard]] std::string drift_warning(const std::string& text, const EnergyShares& measured,
                                        const EnergyShares& expected);

}  // namespace foldkv_lab
