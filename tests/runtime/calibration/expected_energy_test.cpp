#include "runtime/calibration/expected_energy.h"

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

TEST_CASE("orthonormal coordinates: each loses its variance times the distortion of its band") {
  const ProfileSide side = side_of({8, 4, 2, 1, 0.5});
  const double fine = distortion_of({2, 8});
  const SideEnergy stored = expected_energy(side, {{2, 8}, {2, 0}}, 128);
  CHECK(stored.total == doctest::Approx(15.5));
  CHECK(stored.lost == doctest::Approx(12.0 * fine + 3.0 + 0.5));
  CHECK(stored.share_lost() == doctest::Approx(stored.lost / 15.5));
  // Spread over scale groups or not, rotated or not: the sum over a band is the same.
  const double coarse = distortion_of(kTrellis);
  for (int64_t scale_group : {1, 2, 3, 64}) {
    Band band = kTrellis;
    band.width = 5;
    CHECK(expected_energy(side, {band}, scale_group).lost == doctest::Approx(15.5 * coarse));
  }
  CHECK(expected_energy(side, {{5, 0}}, 2).share_lost() == doctest::Approx(1.0));
}

TEST_CASE("gains weigh coordinates, and noise is even inside a scale group") {
  ProfileSide side = side_of({6, 2, 1});
  side.projection = {1.0f};  // of its own
  side.gains = {0.5, 3, 10};
  const SideEnergy one = expected_energy(side, {kTrellis}, 2);
  CHECK(one.total == doctest::Approx(3.0 + 6.0 + 10.0));
  const double d = distortion_of(kTrellis);
  CHECK(one.lost == doctest::Approx(d * d * 9.0 + d * (1.0 - d) * 4.0 * 3.5 + 10.0));
  // Scale groups of one coordinate have nothing to even out.
  CHECK(expected_energy(side, {kTrellis}, 1).lost == doctest::Approx(d * 9.0 + 10.0));
}

TEST_CASE("a projection without gains is not known, and neither is a sum with it") {
  ProfileSide unknown = side_of({6, 2, 1});
  unknown.projection = {1.0f};
  CHECK(expected_energy(unknown, {kTrellis}, 2).total == 0.0);
  CHECK(expected_energy(unknown, {kTrellis}, 2).share_lost() == 0.0);
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
  CHECK(energies[0].lost == doctest::Approx(12.0 + 12.0 * distortion_of({2, 8})));
  CHECK(energies[1].total == 0.0);
}

}  // namespace
}  // namespace foldkv
