#include "runtime/calibration/expected_energy.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/unit_rates.h"

namespace foldkv {
namespace {

const Band kTrellis{2, 1, backend::Code::kTrellis, 2};  // half a bit

ProfileSide side_of(const std::vector<double>& variances) {
  ProfileSide side;
  side.latent_width = static_cast<int64_t>(variances.size());
  side.variances = variances;
  return side;
}

TEST_CASE("the largest of Gaussian squares") {
  const auto of = [](const std::vector<double>& variances) { return largest_square(variances); };
  const double pi = std::acos(-1.0);
  CHECK(of({}) == 0.0);
  CHECK(of({0.0, 0.0}) == 0.0);
  CHECK(of({2.5}) == doctest::Approx(2.5).epsilon(1e-3));
  CHECK(of({4.0, 4.0, 0.0}) == doctest::Approx(4.0 * (1.0 + 2.0 / pi)).epsilon(1e-3));
  // Two of variances a and b, in polar coordinates: with m = (a - b) / 2 the mean is
  // (a + b) / 2 + (2 / pi) (sqrt(a b) + m atan(m / sqrt(a b))).
  CHECK(of({9.0, 1.0}) ==
        doctest::Approx(5.0 + 2.0 / pi * (3.0 + 4.0 * std::atan(4.0 / 3.0))).epsilon(1e-3));
  // Drawn: 64 numbers of variance 1.
  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  double sum = 0.0;
  for (int draw = 0; draw < 20000; ++draw) {
    double largest = 0.0;
    for (int i = 0; i < 64; ++i) largest = std::max(largest, std::pow(normal(generator), 2.0));
    sum += largest / 20000.0;
  }
  CHECK(of(std::vector<double>(64, 1.0)) == doctest::Approx(sum).epsilon(0.01));
}

TEST_CASE("orthonormal coordinates: what is not stored is lost, a trellis leaves its share") {
  const ProfileSide side = side_of({8, 4, 2, 1, 0.5});
  const double distortion = distortion_of(kTrellis);
  for (const bool rotated : {false, true}) {
    // Spread over scale groups or not: the sum over a band is the same.
    for (int64_t scale_group : {1, 2, 3, 64}) {
      Band band = kTrellis;
      band.width = 4;
      const SideEnergy energy = expected_energy(side, {band}, scale_group, rotated);
      CHECK(energy.total == doctest::Approx(15.5));
      CHECK(energy.lost == doctest::Approx(15.0 * distortion + 0.5));
      CHECK(energy.share_lost() == doctest::Approx(energy.lost / 15.5));
    }
    CHECK(expected_energy(side, {{5, 0}}, 2, rotated).share_lost() == doctest::Approx(1.0));
  }
}

TEST_CASE("uniform codes: the largest coordinate sets the step of its scale group") {
  const ProfileSide side = side_of({9, 1, 1, 1});
  const double steps = 7.0;
  const auto noise = [&](const std::vector<double>& variances) {
    return static_cast<double>(variances.size()) * largest_square(variances) / 12.0 / (steps * steps);
  };
  CHECK(expected_energy(side, {{4, 4}}, 4, false).lost == doctest::Approx(noise({9, 1, 1, 1})));
  CHECK(expected_energy(side, {{4, 4}}, 2, false).lost == doctest::Approx(noise({9, 1}) + noise({1, 1})));
  CHECK(expected_energy(side, {{4, 4}}, 4, true).lost == doctest::Approx(noise({3, 3, 3, 3})));
  // Never more than there is.
  CHECK(expected_energy(side_of({9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), {{16, 2}}, 16, false).share_lost() ==
        doctest::Approx(1.0));
}

TEST_CASE("gains weigh coordinates, and noise is even inside a scale group") {
  ProfileSide side = side_of({6, 2, 1});
  side.projection = {1.0f};  // of its own
  side.gains = {0.5, 3, 10};
  const SideEnergy one = expected_energy(side, {kTrellis}, 2, true);
  CHECK(one.total == doctest::Approx(3.0 + 6.0 + 10.0));
  const double d = distortion_of(kTrellis);
  CHECK(one.lost == doctest::Approx(d * d * 9.0 + d * (1.0 - d) * 4.0 * 3.5 + 10.0));
  // Scale groups of one coordinate have nothing to even out.
  CHECK(expected_energy(side, {kTrellis}, 1, true).lost == doctest::Approx(d * 9.0 + 10.0));
  CHECK(expected_energy(side, {{2, 8}}, 2, true).lost ==
        doctest::Approx(3.5 * largest_square(std::vector<double>{4, 4}) / 12.0 / (127.0 * 127.0) + 10.0));
}

TEST_CASE("a projection without gains is not known, and neither is a sum with it") {
  ProfileSide unknown = side_of({6, 2, 1});
  unknown.projection = {1.0f};
  CHECK(expected_energy(unknown, {kTrellis}, 2, false).total == 0.0);
  CHECK(expected_energy(unknown, {kTrellis}, 2, false).share_lost() == 0.0);
  Profile profile;
  ProfileGroup group;
  group.scale_group = 64;
  group.keys = side_of({8, 4});
  group.values = side_of({1, 1});
  profile.groups = {group, group};
  profile.groups[1].values = unknown;
  const Plan plan{"p", {{{{2, 0}}, {{2, 0}}}, {{{2, 8}}, {{2, 8}}}}};
  const Energies energies = expected_energy(profile, plan);
  CHECK(energies[0].total == doctest::Approx(24.0));
  CHECK(energies[0].lost > 12.0);
  CHECK(energies[0].lost < 12.01);
  CHECK(energies[1].total == 0.0);
}

}  // namespace
}  // namespace foldkv
