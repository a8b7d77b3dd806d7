#include "runtime/calibration/bit_allocation.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/golden.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

// D of golden/bits.json.
double golden_distortion(double bits) { return bits == 0.0 ? 1.0 : bits == 1.0 ? 0.36 : 1.2 * std::pow(4.0, -bits); }

double total_of(const std::vector<AllocationUnit>& units, const std::vector<int32_t>& chosen) {
  double total = 0.0;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    total += units[unit].cost *
             (chosen[unit] < 0 ? 1.0 : units[unit].choices[static_cast<size_t>(chosen[unit])].distortion);
  }
  return total;
}

double bits_of(const std::vector<AllocationUnit>& units, const std::vector<int32_t>& chosen) {
  double bits = 0.0;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (chosen[unit] >= 0) bits += units[unit].choices[static_cast<size_t>(chosen[unit])].bits;
  }
  return bits;
}

TEST_CASE("golden/bits.json") {
  const nlohmann::json file = test::read_golden("bits");
  for (const auto& golden : file["cases"]) {
    const std::vector<double> variances = test::numbers(golden["variances"]);
    const std::vector<double> widths = test::numbers(golden["widths"]);
    const auto block = golden["block"].get<size_t>();
    std::vector<AllocationUnit> units;
    for (size_t first = 0; first < variances.size(); first += block) {
      AllocationUnit unit;
      for (size_t i = first; i < first + block; ++i) unit.cost += variances[i];
      for (const double width : widths) {
        if (width > 0.0) unit.choices.push_back({width * static_cast<double>(block), golden_distortion(width)});
      }
      unit.after_previous = first > 0;
      units.push_back(unit);
    }
    const std::vector<int32_t> chosen = allocate_bits(units, golden["budget_bits"].get<double>());
    std::vector<double> bits;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      bits.push_back(chosen[unit] < 0 ? 0.0
                                      : units[unit].choices[static_cast<size_t>(chosen[unit])].bits /
                                            static_cast<double>(block));
    }
    CHECK(bits == test::numbers(golden["bits"]));
    CHECK(bits_of(units, chosen) == golden["used"].get<double>());
  }
}

// All allocations of a few units, one by one.
double best_total(const std::vector<AllocationUnit>& units, double budget) {
  std::vector<int32_t> chosen(units.size(), -1);
  double best = total_of(units, chosen);
  while (true) {
    size_t unit = 0;
    while (unit < units.size() && ++chosen[unit] == static_cast<int32_t>(units[unit].choices.size())) chosen[unit++] = -1;
    if (unit == units.size()) return best;
    if (bits_of(units, chosen) <= budget) best = std::min(best, total_of(units, chosen));
  }
}

TEST_CASE("near the best of all allocations, and never beyond the budget") {
  test::Random random(8);
  for (int round = 0; round < 100; ++round) {
    std::vector<AllocationUnit> units(5);
    for (AllocationUnit& unit : units) {
      unit.cost = std::exp(3.0 * random.normal());
      unit.choices = {{64, 0.28}, {128, 0.078}, {192, 0.021}, {256, 0.007}};
    }
    const double budget = random.uniform(0.0, 1400.0);
    const std::vector<int32_t> chosen = allocate_bits(units, budget);
    CHECK(bits_of(units, chosen) <= budget);
    // A budget that is a unit short of the next raise is the most that taking the steepest way can lose.
    CHECK(total_of(units, chosen) <= best_total(units, budget - 64.0) + 1e-12);
  }
}

TEST_CASE("units that must be stored are, and rates fall along a side") {
  std::vector<AllocationUnit> units(4);
  for (AllocationUnit& unit : units) unit.choices = {{10, 0.5}, {20, 0.1}};
  units[0].stored = true;
  units[1].after_previous = units[2].after_previous = true;
  units[2].cost = 100.0;
  units[3].cost = 1.0;
  CHECK(allocate_bits(units, 10.0) == std::vector<int32_t>{0, -1, -1, -1});
  CHECK(allocate_bits(units, 30.0) == std::vector<int32_t>{0, -1, -1, 1});  // unit 2 waits for unit 1
  CHECK(allocate_bits({}, 30.0).empty());
}

}  // namespace
}  // namespace foldkv
