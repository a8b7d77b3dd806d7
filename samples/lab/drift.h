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
//
// The factor lies between what SmolLM2-135M showed under profiles of 40 samples of Perl pages: 1.4 to 1.6 on other Perl
// pages, since bases fit the samples they are made from better than any other text, and 2.1 to 3.0 on the Bible. (BellowsKV
// of 10 samples: 1.1 to 1.35, and 1.95 of the values. Bit plans of 10 samples lose 2.0 times on other pages at 14x.)
inline constexpr double kDriftFactor = 1.75;
[[nodiscard]] std::string drift_warning(const std::string& text, const EnergyShares& measured,
                                        const EnergyShares& expected);

}  // namespace foldkv_lab
