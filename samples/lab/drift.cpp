#include "samples/lab/drift.h"

#include "absl/strings/str_format.h"

namespace foldkv_lab {

EnergyShares measured_energy(const foldkv_sequence_stats& stats) {
  return {stats.energy_out_of_basis[FOLDKV_KEYS], stats.energy_out_of_basis[FOLDKV_VALUES]};
}

EnergyShares expected_energy(const foldkv_sequence_stats& stats) {
  return {stats.expected_energy_out_of_basis[FOLDKV_KEYS], stats.expected_energy_out_of_basis[FOLDKV_VALUES]};
}

std::string drift_warning(const std::string& text, const EnergyShares& measured, const EnergyShares& expected) {
  const bool keys = expected.keys > 0 && measured.keys > kDriftFactor * expected.keys;
  const bool values = expected.values > 0 && measured.values > kDriftFactor * expected.values;
  if (!keys && !values) return "";
  return absl::StrFormat(
      "warning: %s is unlike the text of calibration: %.1f%% of the keys' energy and %.1f%% of the values' are lost, "
      "expected were %.1f%% and %.1f%%\n",
      text, 100 * measured.keys, 100 * measured.values, 100 * expected.keys, 100 * expected.values);
}

}  // namespace foldkv_lab
