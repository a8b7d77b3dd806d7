#include "runtime/calibration/plan_bits.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/codec/latent_layout.h"
#include "runtime/profile/bands.h"

namespace foldkv {
namespace {

constexpr int64_t kWidth = 160;  // stacked: two units of 64 and one of 32

ProfileSide side_of(double first_variance) {
  ProfileSide side;
  side.latent_width = kWidth;
  side.mean.resize(kWidth);
  for (int64_t i = 0; i < kWidth; ++i) {
    side.variances.push_back(first_variance * std::exp(-0.03 * static_cast<double>(i)));
    for (int64_t j = 0; j < kWidth; ++j) side.basis.push_back(static_cast<float>(i * kWidth + j));
  }
  side.projection = side.basis;
  return side;
}

Profile wide_profile() {
  Profile profile;
  profile.layer_count = 4;
  for (int32_t index = 0; index < 2; ++index) {
    ProfileGroup group;
    group.layers = {2 * index, 2 * index + 1};
    group.key_width = kWidth / 2;
    group.scale_group = 64;
    group.keys = side_of(index == 0 ? 9.0 : 0.01);
    group.values = side_of(1.0);
    profile.groups.push_back(group);
  }
  profile.plans = {{"default", {{{{160, 4}}, {{160, 4}}}, {{{160, 4}}, {{160, 4}}}}}};
  REQUIRE(finish_profile(profile).ok());
  return profile;
}

int64_t bytes_of(const Profile& profile, const Plan& plan) {
  int64_t bytes = 0;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    bytes += latent_token_bytes(latent_layout(latent_format(profile.groups[index], plan.groups[index])));
  }
  return bytes;
}

double bits_of(const std::vector<Band>& bands) {
  double bits = 0.0;
  for (const Band& band : bands) bits += static_cast<double>(band.width * band.bits) / band.step;
  return bits;
}

TEST_CASE("plans keep to their bytes, use them, and lose less with more of them") {
  const Profile profile = wide_profile();
  const double full = 4.0 * 2 * kWidth;
  std::vector<PlanWish> wishes;
  for (const double ratio : {4.0, 8.0, 16.0, 32.0}) wishes.push_back({std::to_string(ratio), 0.0, ratio});
  wishes.push_back({"bytes", 100.0});
  const Profile planned = plan_bits(profile, wishes).value();
  REQUIRE(planned.plans.size() == 5);
  double cost = 0.0;
  for (size_t index = 0; index < 4; ++index) {
    const double wanted = full / wishes[index].ratio;
    const auto bytes = static_cast<double>(bytes_of(planned, planned.plans[index]));
    CHECK(bytes <= wanted);
    CHECK(bytes > wanted - 34.0);  // the largest step of a unit
    CHECK(expected_cost(planned, planned.plans[index]) > cost);
    cost = expected_cost(planned, planned.plans[index]);
  }
  CHECK(bytes_of(planned, planned.plans[4]) <= 100);
  // The side whose errors cost most gets most; none is left out.
  const GroupPlan& first = planned.plans[2].groups[0];
  const GroupPlan& second = planned.plans[2].groups[1];
  CHECK(width_of(first.keys) > width_of(second.keys));
  CHECK(width_of(second.keys) >= 64);
}

TEST_CASE("bases are cut to the widest plan, column by column") {
  const Profile planned = plan_bits(wide_profile(), {{"small", 0.0, 40.0}, {"less small", 0.0, 20.0}}).value();
  const ProfileSide& side = planned.groups[1].values;
  const int64_t width = width_of(planned.plans[1].groups[1].values);
  REQUIRE(width < kWidth);
  CHECK(side.latent_width == width);
  REQUIRE(side.basis.size() == static_cast<size_t>(kWidth * width));
  CHECK(side.projection == side.basis);
  for (int64_t row : {int64_t{0}, int64_t{1}, kWidth - 1}) {
    for (int64_t column : {int64_t{0}, width - 1}) {
      CHECK(side.basis[static_cast<size_t>(row * width + column)] == static_cast<float>(row * kWidth + column));
    }
  }
  CHECK(side.variances.size() == kWidth);
}

TEST_CASE("a weight shifts bits between the sides") {
  const auto value_bits = [](double weight) {
    const Profile planned = plan_bits(wide_profile(), {{"p", 0.0, 24.0, weight}}).value();
    double bits = 0.0;
    for (const GroupPlan& group : planned.plans[0].groups) bits += bits_of(group.values);
    return bits;
  };
  CHECK(value_bits(0.01) < value_bits(1.0));
  CHECK(value_bits(1.0) < value_bits(100.0));
}

TEST_CASE("a weight of one group and side shifts bits there") {
  const auto plan_with = [](const SideNumbers& weights) {
    return plan_bits(wide_profile(), {{"p", 0.0, 24.0, 1.0, weights}}).value().plans[0];
  };
  const Plan even = plan_with({{1.0, 1.0}, {1.0, 1.0}});
  CHECK(even == plan_bits(wide_profile(), {{"p", 0.0, 24.0}}).value().plans[0]);
  CHECK(even == plan_with({{7.0, 7.0}, {7.0, 7.0}}));  // only ratios count
  const Plan shifted = plan_with({{1.0, 1.0}, {1.0, 100.0}});
  CHECK(bits_of(shifted.groups[1].values) > bits_of(even.groups[1].values));
  CHECK(bits_of(shifted.groups[0].keys) < bits_of(even.groups[0].keys));
  // Both kinds of weight multiply.
  CHECK(plan_with({{1.0, 50.0}, {1.0, 50.0}}) == plan_bits(wide_profile(), {{"p", 0.0, 24.0, 50.0}}).value().plans[0]);
  // Variances times a weight are what a profile with such variances has.
  Profile scaled = wide_profile();
  for (double& variance : scaled.groups[1].keys.variances) variance *= 64.0;
  CHECK(plan_with({{1.0, 1.0}, {64.0, 1.0}}) == plan_bits(scaled, {{"p", 0.0, 24.0}}).value().plans[0]);
}

TEST_CASE("weights that are none") {
  const auto refused = [](const SideNumbers& weights, double value_weight, const std::string& argument) {
    const Status status = plan_bits(wide_profile(), {{"p", 0.0, 24.0, value_weight, weights}}).status();
    CHECK(argument_of(status) == argument);
  };
  refused({{1.0, 1.0}}, 1.0, "plans[0].group_weights");
  refused({{1.0, 1.0}, {1.0, 0.0}}, 1.0, "plans[0].group_weights[1][1]");
  refused({{-1.0, 1.0}, {1.0, 1.0}}, 1.0, "plans[0].group_weights[0][0]");
  refused({{1.0, std::nan("")}, {1.0, 1.0}}, 1.0, "plans[0].group_weights[0][1]");
  refused({{1.0, 1e200}, {1.0, 1.0}}, 1e200, "plans[0].group_weights[0][1]");
}

TEST_CASE("costs of sides sum to the cost of the plan") {
  const Profile profile = wide_profile();
  const SideNumbers costs = expected_costs(profile, profile.plans[0]);
  REQUIRE(costs.size() == 2);
  double first = 0.0;
  for (double variance : profile.groups[0].keys.variances) first += variance * 6.9 / 12.0 / 49.0;
  CHECK(costs[0][0] == doctest::Approx(first));
  CHECK(costs[1][1] == doctest::Approx(first / 9.0));
  CHECK(costs[0][0] + costs[0][1] + costs[1][0] + costs[1][1] ==
        doctest::Approx(expected_cost(profile, profile.plans[0])));
}

TEST_CASE("the cost of a plan in closed form") {
  Profile profile = wide_profile();
  const double all = expected_cost(profile, profile.plans[0]);
  double sum = 0.0;
  for (const ProfileGroup& group : profile.groups) {
    for (const ProfileSide* side : {&group.keys, &group.values}) {
      for (double variance : side->variances) sum += variance;
    }
  }
  CHECK(all == doctest::Approx(sum * 6.9 / 12.0 / 49.0));
  Plan nothing = profile.plans[0];
  for (GroupPlan& group : nothing.groups) {
    group.keys = {{10, 1, backend::Code::kTrellis, 2}};
    group.values = {{10, 1, backend::Code::kTrellis, 2}};
  }
  double first_ten = 0.0;
  for (const ProfileGroup& group : profile.groups) {
    for (size_t i = 0; i < 10; ++i) first_ten += group.keys.variances[i] + group.values.variances[i];
  }
  CHECK(expected_cost(profile, nothing) == doctest::Approx(sum - (1.0 - 0.526) * first_ten));
}

TEST_CASE("wishes that cannot be had are refused by name") {
  const auto argument = [](const std::vector<PlanWish>& wishes) {
    return argument_of(plan_bits(wide_profile(), wishes).status());
  };
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(argument({}) == "plans");
  CHECK(argument({{"a"}}) == "plans[0]");
  CHECK(argument({{"a", 100.0, 10.0}}) == "plans[0]");
  CHECK(argument({{"a", 0.0, 10.0}, {"b", 0.0, 1000.0}}) == "plans[1]");
  CHECK(argument({{"a", 1.0}}) == "plans[0]");
  for (double bad : {-1.0, infinity, std::nan("")}) {
    CHECK(argument({{"a", bad}}) == "plans[0].bytes_per_token");
    CHECK(argument({{"a", 0.0, bad}}) == "plans[0].ratio");
    CHECK(argument({{"a", 0.0, 10.0, bad}}) == "plans[0].value_weight");
  }
  CHECK(argument({{"", 0.0, 10.0}}) == "plans[0].name");
  CHECK(argument({{"a", 0.0, 10.0}, {"a", 0.0, 12.0}}) == "plans[1].name");
}

}  // namespace
}  // namespace foldkv
