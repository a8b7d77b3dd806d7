#include "samples/lab/drift.h"

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("a warning comes when keys or values lose much more than was expected") {
  const EnergyShares expected = {0.1, 0.2};
  CHECK(drift_warning("it", {0.175, 0.35}, expected).empty());
  CHECK(drift_warning("it", {0.0, 0.0}, expected).empty());
  CHECK(drift_warning("it", {0.1751, 0.2}, expected).find("it is unlike") != std::string::npos);
  CHECK(drift_warning("it", {0.1, 0.351}, expected).find("35.1%") != std::string::npos);
}

TEST_CASE("what is not expected is not compared") {
  CHECK(drift_warning("it", {0.9, 0.9}, {}).empty());
  CHECK(drift_warning("it", {0.9, 0.9}, {0.0, 0.9}).empty());
}

TEST_CASE("figures are those of the sequence") {
  foldkv_sequence_stats stats = {};
  stats.energy_out_of_basis[FOLDKV_KEYS] = 0.25;
  stats.energy_out_of_basis[FOLDKV_VALUES] = 0.5;
  stats.expected_energy_out_of_basis[FOLDKV_VALUES] = 0.125;
  CHECK(measured_energy(stats).keys == 0.25);
  CHECK(measured_energy(stats).values == 0.5);
  CHECK(expected_energy(stats).keys == 0.0);
  CHECK(expected_energy(stats).values == 0.125);
}

}  // namespace
}  // namespace foldkv_lab::test
