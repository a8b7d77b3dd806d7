#include "tests/runtime/profile/sample_profile.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace foldkv::test {
namespace {

// Orthonormal columns that are not trivial: the first columns of I - 2 u u^T with u = (1, 1, 1, 1) / 2.
std::vector<float> reflected_basis(int64_t rows, int64_t columns) {
  std::vector<float> basis;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) basis.push_back(row == column ? 0.5f : -0.5f);
  }
  return basis;
}

ProfileGroup wide_group() {
  ProfileGroup group;
  group.layers = {0, 1};
  group.key_width = 2;
  group.scale_group = 2;
  group.rotated = true;
  group.correction = {1, 2, 3, 0x123456789abcdef0u};
  group.keys = {3, reflected_basis(4, 3), {1.0f, -2.0f, 0.5f, 900.0f}, {4.0, 2.0, 0.5, 0.25}};
  group.values = {2, reflected_basis(4, 2), {0.25f, 0.0f, -0.125f, 3.0f}, {1.5, 0.75, 0.75, 0.0}};
  return group;
}

ProfileGroup narrow_group() {
  ProfileGroup group;
  group.layers = {3};
  group.key_width = 2;
  group.scale_group = 128;
  group.keys = {1, {0.6f, 0.8f}, {0.0f, 1.0f}, {2.0, 1.0}};
  group.values = {2, {0.0f, 1.0f, 1.0f, 0.0f}, {-1.0f, 1.0f}, {8.0, 0.125}};
  return group;
}

bool equal(const ProfileSide& a, const ProfileSide& b) {
  return a.latent_width == b.latent_width && a.basis == b.basis && a.mean == b.mean && a.variances == b.variances;
}

bool equal(const ProfileGroup& a, const ProfileGroup& b) {
  return a.layers == b.layers && a.key_width == b.key_width && a.scale_group == b.scale_group &&
         a.rotated == b.rotated && a.correction == b.correction && equal(a.keys, b.keys) && equal(a.values, b.values);
}

}  // namespace

ModelDescription profile_model_description() {
  LayerRules layer;
  layer.query_heads = 2;
  layer.kv_heads = 1;
  layer.head_size = 2;
  layer.rotation = RotationRules{Pairing::kHalfSplit, {0.5}, 1.0};
  layer.attention_scale = 0.5;
  ModelDescription description;
  description.layers.assign(5, layer);
  description.name = "sample";
  return description;
}

Profile sample_profile() {
  Profile profile;
  profile.model_fingerprint = Model::create(profile_model_description()).value()->fingerprint();
  profile.model_name = "sample";
  profile.layer_count = 5;
  profile.centred = true;
  profile.calibration_tokens = int64_t{5'000'000'000};
  profile.calibration_samples = 12;
  profile.made_by = "foldkv 0.1.0";
  profile.groups = {wide_group(), narrow_group()};
  profile.plans = {{"default", {{{{1, 8}, {1, 4}, {1, 0}}, {{2, 3}}}, {{{1, 2}}, {{2, 5}}}}}};
  const Status status = finish_profile(profile);
  if (!status.ok()) throw std::logic_error(status.ToString());
  return profile;
}

ProfileSensitivity sample_sensitivity() {
  ProfileSensitivity sensitivity;
  sensitivity.scale = 0.0625;
  sensitivity.seed = 0xfedcba9876543210u;
  sensitivity.text = "the Perl manual";
  sensitivity.keys.resize(5);
  sensitivity.values = {{0.03125, 300, 2}, {0.0, 300, 2}, {}, {2.5, 300, 2}, {0.001, 12, 1}};
  return sensitivity;
}

bool equal(const Profile& a, const Profile& b) {
  const auto same_group = [](const ProfileGroup& x, const ProfileGroup& y) { return equal(x, y); };
  return a.model_fingerprint == b.model_fingerprint && a.model_name == b.model_name && a.layer_count == b.layer_count &&
         a.centred == b.centred && a.calibration_tokens == b.calibration_tokens &&
         a.calibration_samples == b.calibration_samples && a.shrinkage == b.shrinkage &&
         a.made_by == b.made_by &&
         std::equal(a.groups.begin(), a.groups.end(), b.groups.begin(), b.groups.end(), same_group) &&
         a.plans == b.plans && a.fingerprint == b.fingerprint && a.sensitivity == b.sensitivity;
}

}  // namespace foldkv::test
