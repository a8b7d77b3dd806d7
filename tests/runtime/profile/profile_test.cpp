#include "runtime/profile/profile.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "doctest/doctest.h"
#include "tests/runtime/profile/sample_profile.h"

namespace foldkv {
namespace {

using ProfileChange = std::function<void(Profile&)>;

std::string refused_argument(const ProfileChange& change) {
  Profile profile = test::sample_profile();
  change(profile);
  const uint64_t before = profile.fingerprint;
  const Status status = finish_profile(profile);
  CHECK((status.ok() || profile.fingerprint == before));
  CHECK((status.ok() || status.code() == absl::StatusCode::kInvalidArgument));
  return argument_of(status);
}

uint64_t fingerprint_with(const ProfileChange& change) {
  Profile profile = test::sample_profile();
  change(profile);
  const Status status = finish_profile(profile);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return profile.fingerprint;
}

TEST_CASE("the fingerprint of a profile stays: files hold it") {
  CHECK(test::sample_profile().model_fingerprint == 0x9fe50fbba88d5fb6u);
  CHECK(test::sample_profile().fingerprint == 0xbee03de6639ddc93u);
}

TEST_CASE("every field changes the fingerprint") {
  const ProfileChange changes[] = {
      [](Profile& profile) { profile.model_fingerprint ^= 1; },
      [](Profile& profile) { profile.model_name = "Sample"; },
      [](Profile& profile) { profile.layer_count = 6; },
      [](Profile& profile) { profile.calibration_tokens = 1; },
      [](Profile& profile) { profile.calibration_samples = 13; },
      [](Profile& profile) { profile.made_by = "foldkv 0.1.1"; },
      [](Profile& profile) {
        profile.groups.pop_back();
        profile.plans[0].groups.pop_back();
      },
      [](Profile& profile) { profile.groups[1].layers[0] = 4; },
      [](Profile& profile) { profile.groups[0].scale_group = 4; },
      [](Profile& profile) { profile.groups[0].rotated = false; },
      [](Profile& profile) { profile.groups[0].correction.rank = 2; },
      [](Profile& profile) { profile.groups[0].correction.oversample = 1; },
      [](Profile& profile) { profile.groups[0].correction.iterations = 1; },
      [](Profile& profile) { profile.groups[0].correction.seed ^= 1; },
      [](Profile& profile) { profile.groups[0].keys.basis[5] = 0.25f; },
      [](Profile& profile) { profile.groups[0].keys.mean[3] = 901.0f; },
      [](Profile& profile) { profile.groups[0].keys.variances[3] = 0.125; },
      [](Profile& profile) { profile.plans[0].groups[0].keys[1].bits = 5; },
      [](Profile& profile) {
        profile.plans[0].groups[0].values = {{1, 3}, {1, 3}};
      },
      [](Profile& profile) { profile.plans[0].name = "small"; },
      [](Profile& profile) {
        profile.plans.push_back(profile.plans[0]);
        profile.plans[1].name = "small";
      },
  };
  const uint64_t unchanged = test::sample_profile().fingerprint;
  for (size_t index = 0; index < std::size(changes); ++index) {
    CAPTURE(index);
    CHECK(fingerprint_with(changes[index]) != unchanged);
  }
  Profile uncentred = test::sample_profile();
  for (ProfileGroup& group : uncentred.groups) {
    group.keys.mean.assign(group.keys.mean.size(), 0.0f);
    group.values.mean.assign(group.values.mean.size(), 0.0f);
  }
  CHECK(finish_profile(uncentred).ok());
  const uint64_t with_zero_means = uncentred.fingerprint;
  uncentred.centred = false;
  CHECK(finish_profile(uncentred).ok());
  CHECK(uncentred.fingerprint != with_zero_means);
}

TEST_CASE("fields out of range are refused") {
  CHECK(refused_argument([](Profile& profile) { profile.layer_count = 0; }) == "layer_count");
  CHECK(refused_argument([](Profile& profile) { profile.layer_count = 4097; }) == "layer_count");
  CHECK(refused_argument([](Profile& profile) { profile.model_name.assign(128, 'x'); }) == "model_name");
  CHECK(refused_argument([](Profile& profile) { profile.made_by.assign(64, 'x'); }) == "made_by");
  CHECK(refused_argument([](Profile& profile) { profile.calibration_tokens = -1; }) == "calibration_tokens");
  CHECK(refused_argument([](Profile& profile) { profile.calibration_samples = -1; }) == "calibration_samples");
  CHECK(refused_argument([](Profile& profile) { profile.groups.clear(); }) == "groups");
}

TEST_CASE("groups that do not fit are refused") {
  CHECK(refused_argument([](Profile& profile) { profile.groups[1].layers.clear(); }) == "groups[1].layers");
  CHECK(refused_argument([](Profile& profile) { profile.groups[1].layers = {5}; }) == "groups[1].layers[0]");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].layers = {-1, 1}; }) == "groups[0].layers[0]");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].layers = {1, 1}; }) == "groups[0].layers[1]");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].layers = {1, 0}; }) == "groups[0].layers[1]");
  CHECK(refused_argument([](Profile& profile) { profile.groups[1].layers = {1}; }) == "groups[1].layers[0]");
  CHECK(refused_argument([](Profile& profile) { std::swap(profile.groups[0], profile.groups[1]); }) ==
        "groups[1].layers[0]");
  for (int64_t bad : {int64_t{0}, int64_t{-2}, int64_t{1} << 20, std::numeric_limits<int64_t>::max()}) {
    CHECK(refused_argument([&](Profile& profile) { profile.groups[0].key_width = bad; }) == "groups[0].key_width");
  }
  for (int32_t bad : {0, -1, (1 << 20) + 1}) {
    CHECK(refused_argument([&](Profile& profile) { profile.groups[0].scale_group = bad; }) == "groups[0].scale_group");
  }
  for (int32_t bad : {-1, 5}) {
    CHECK(refused_argument([&](Profile& profile) { profile.groups[0].correction.rank = bad; }) ==
          "groups[0].correction.rank");
  }
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].correction.oversample = -1; }) ==
        "groups[0].correction.oversample");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].correction.iterations = 17; }) ==
        "groups[0].correction.iterations");
}

TEST_CASE("sides that do not fit are refused") {
  const std::string keys = "groups[0].keys";
  for (int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{5}, std::numeric_limits<int64_t>::max()}) {
    CHECK(refused_argument([&](Profile& profile) { profile.groups[0].keys.latent_width = bad; }) ==
          keys + ".latent_width");
  }
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.basis.pop_back(); }) == keys + ".basis");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.latent_width = 2; }) == keys + ".basis");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].key_width = 3; }) == keys + ".basis");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.mean.push_back(0.0f); }) == keys + ".mean");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.variances.pop_back(); }) == keys + ".variances");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.variances[3] = -0.5; }) ==
        keys + ".variances[3]");
  CHECK(refused_argument([](Profile& profile) { profile.groups[0].keys.variances[2] = 2.5; }) ==
        keys + ".variances[2]");
  CHECK(refused_argument([](Profile& profile) { profile.centred = false; }) == keys + ".mean[0]");
  const std::string values = "groups[1].values";
  CHECK(refused_argument([](Profile& profile) { profile.groups[1].values.basis.clear(); }) == values + ".basis");
}

TEST_CASE("numbers that are not finite are refused") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused_argument([&](Profile& profile) { profile.groups[0].keys.basis[11] = nan; }) ==
        "groups[0].keys.basis[11]");
  CHECK(refused_argument([&](Profile& profile) { profile.groups[1].values.mean[1] = -infinity; }) ==
        "groups[1].values.mean[1]");
  CHECK(refused_argument([&](Profile& profile) { profile.groups[0].values.variances[0] = infinity; }) ==
        "groups[0].values.variances[0]");
}

TEST_CASE("bands that do not fit are refused") {
  const auto refused_bands = [](std::vector<Band> bands) {
    return refused_argument([&](Profile& profile) { profile.plans[0].groups[0].keys = bands; });
  };
  const std::string bands = "plans[0].groups[0].keys";
  CHECK(refused_bands({}) == bands);
  CHECK(refused_bands({{2, 4}}).empty());
  CHECK(refused_bands({{4, 4}}) == bands);
  CHECK(refused_bands({{3, 4}, {0, 4}}) == bands + "[1].width");
  CHECK(refused_bands({{4, 4}, {-1, 4}}) == bands + "[1].width");
  CHECK(refused_bands({{3, 1}}) == bands + "[0].bits");
  CHECK(refused_bands({{3, 9}}) == bands + "[0].bits");
  CHECK(refused_bands({{3, -4}}) == bands + "[0].bits");
  CHECK(refused_bands({{3, 0}}) == bands + "[0].bits");
  CHECK(refused_bands({{1, 4}, {1, 0}, {1, 4}}) == bands + "[2].bits");
  CHECK(refused_bands({{1, 4}, {1, 0}, {1, 0}}).empty());
  CHECK(refused_bands({{2147483647, 4}, {2147483647, 4}}) == bands + "[0].width");
}

TEST_CASE("plans that do not fit are refused") {
  CHECK(refused_argument([](Profile& profile) { profile.plans.clear(); }) == "plans");
  CHECK(refused_argument([](Profile& profile) { profile.plans.resize(257, profile.plans[0]); }) == "plans");
  CHECK(refused_argument([](Profile& profile) { profile.plans[0].name.clear(); }) == "plans[0].name");
  CHECK(refused_argument([](Profile& profile) { profile.plans[0].name.assign(32, 'x'); }) == "plans[0].name");
  CHECK(refused_argument([](Profile& profile) { profile.plans.push_back(profile.plans[0]); }) == "plans[1].name");
  CHECK(refused_argument([](Profile& profile) { profile.plans[0].groups.pop_back(); }) == "plans[0].groups");
  CHECK(refused_argument([](Profile& profile) {
          profile.plans.push_back(profile.plans[0]);
          profile.plans[1].name = "small";
          profile.plans[1].groups[1].values = {{3, 4}};
        }) == "plans[1].groups[1].values");
}

TEST_CASE("a plan is found by its name, the first without one") {
  Profile profile = test::sample_profile();
  profile.plans.push_back(profile.plans[0]);
  profile.plans[1].name = "small";
  CHECK(find_plan(profile, "").value() == 0);
  CHECK(find_plan(profile, "default").value() == 0);
  CHECK(find_plan(profile, "small").value() == 1);
  const Status status = find_plan(profile, "tiny").status();
  CHECK(argument_of(status) == "plan");
  CHECK(std::string(status.message()).find("default, small") != std::string::npos);
}

// The words in which a model that differs is refused.
std::string mismatch_with(const std::function<void(ModelDescription&)>& change) {
  ModelDescription description = test::profile_model_description();
  change(description);
  const Status status = check_profile(test::sample_profile(), *Model::create(description).value());
  CHECK((status.ok() || status.code() == absl::StatusCode::kAborted));
  return std::string(status.message());
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("the model it was made for is accepted, an unnamed one too") {
  CHECK(mismatch_with([](ModelDescription&) {}).empty());
  CHECK(mismatch_with([](ModelDescription& model) { model.name.clear(); }).empty());
  CHECK(mismatch_with([](ModelDescription& model) { model.hidden_size = 99; }).empty());
  Profile unnamed = test::sample_profile();
  unnamed.model_name.clear();
  CHECK(finish_profile(unnamed).ok());
  CHECK(check_profile(unnamed, *Model::create(test::profile_model_description()).value()).ok());
}

TEST_CASE("another model is refused with the difference in words") {
  const std::string layers = mismatch_with([](ModelDescription& model) { model.layers.pop_back(); });
  CHECK(contains(layers, "5 layers"));
  CHECK(contains(layers, "4"));
  const std::string width = mismatch_with([](ModelDescription& model) { model.layers[3].kv_heads = 2; });
  CHECK(contains(width, "layer 3"));
  CHECK(contains(width, "key width"));
  const std::string kind = mismatch_with([](ModelDescription& model) { model.layers[1].rotation.reset(); });
  CHECK(contains(kind, "layers 0 and 1"));
  const std::string name = mismatch_with([](ModelDescription& model) { model.name = "other"; });
  CHECK(contains(name, "\"sample\""));
  CHECK(contains(name, "\"other\""));
  const std::string rules = mismatch_with([](ModelDescription& model) { model.layers[4].soft_cap = 30.0; });
  CHECK(contains(rules, "soft cap"));
  CHECK(contains(rules, "fingerprint"));
}

}  // namespace
}  // namespace foldkv
