#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/codec/band.h"
#include "runtime/codec/correction.h"
#include "runtime/codec/latent_layout.h"
#include "runtime/model/model.h"
#include "runtime/profile/layer_sensitivity.h"

// What calibration learned of one model, in memory.
namespace foldkv {

// What latents of a group are.
enum class GroupKind : int32_t {
  kLearned = 0,   // projections on the bases of the profile
  kRows = 1,      // the stacked rows themselves: plain quantizers
  kSequence = 2,  // projections on bases that each sequence finds in its first encoded run (xKV)
  kMerged = 3,    // directions that two layers share, and norms (MiniCache)
};

// One side (keys or values) of a layer group. Only a learned group has a basis; the variances of others are zeros.
struct ProfileSide {
  int64_t latent_width = 0;
  std::vector<float>
      basis;  // [layers * key_width][latent_width]: rows are rebuilt by it; rotated when the group says so
  std::vector<float> mean;        // [layers * key_width]; zeros when uncentred
  std::vector<double> variances;  // [layers * key_width] eigenvalues in falling order, before rotation; with a
                                  // projection of its own what the coordinate's error costs when it is not stored
  std::vector<float>
      projection;  // like basis: its transpose makes latents. Empty: the basis, whose columns are orthonormal
  std::vector<double> gains;  // [layers * key_width] like variances: squared lengths of the columns that rebuild the
                              // coordinates. Empty: ones without a projection, else not known
};

struct ProfileGroup {
  std::vector<int32_t> layers;  // rising
  int64_t key_width = 0;        // of one layer
  int32_t scale_group = 0;
  bool rotated = false;  // Hadamard inside scale groups, folded into the bases
  CorrectionRules correction;
  ProfileSide keys;
  ProfileSide values;
  GroupKind kind = GroupKind::kLearned;
  MergeRules merge;  // of a merged group

  [[nodiscard]] int64_t stacked_width() const { return static_cast<int64_t>(layers.size()) * key_width; }
};

// The bit widths of a layer group's latent coordinates. Coordinates beyond the bands are not stored.
struct GroupPlan {
  std::vector<Band> keys;
  std::vector<Band> values;

  bool operator==(const GroupPlan&) const = default;
};

// One way to store latents on the profile's bases.
struct Plan {
  std::string name;
  std::vector<GroupPlan> groups;     // of Profile::groups
  double held_out_divergence = 0.0;  // from the full cache on text not calibrated on, nats per token
  int64_t held_out_tokens = 0;       // that it was measured on; 0: it was not

  bool operator==(const Plan&) const = default;
};

struct Profile {
  uint64_t model_fingerprint = 0;
  std::string model_name;
  int32_t layer_count = 0;
  bool centred = true;
  int64_t calibration_tokens = 0;
  int64_t calibration_samples = 0;
  double shrinkage = 0.0;  // 0 to 1: largest share of the identity in a covariance, 0 when there were enough rows
  std::string made_by;
  std::vector<ProfileGroup> groups;  // disjoint, in rising order of their first layer
  std::vector<Plan> plans;           // one or more, of different names; the first is the default
  std::vector<int32_t> sources;  // of each layer: the layer whose keys and values it reads (KVSharer), its own or an
                                 // earlier one that reads its own; empty: all their own
  uint64_t fingerprint = 0;      // see content_fingerprint; set by finish_profile and by the reader
  // Not in the fingerprint: that says whether codes are understood, and sensitivities change no code. Measuring them
  // leaves caches that were made with the profile valid.
  std::optional<ProfileSensitivity> sensitivity;
};

// How one group's latents are stored under a plan. Refers to the group's variances.
[[nodiscard]] LatentFormat latent_format(const ProfileGroup& group, const GroupPlan& plan);

// Codes, scales and correction coefficients of one token in all groups under a plan.
[[nodiscard]] int64_t bytes_per_token(const Profile& profile, const Plan& plan);
// 16-bit keys and values of one token in the same layers.
[[nodiscard]] int64_t full_bytes_per_token(const Profile& profile);

// The index of a plan; an empty name: the default. Argument error that lists the names there are.
[[nodiscard]] StatusOr<int64_t> find_plan(const Profile& profile, absl::string_view name);

// The profile with what was measured of a plan (an empty name: the default), on `tokens` tokens. Its fingerprint stays:
// the figure changes no code, and sequences that were saved before it was recorded belong to the profile still.
// Argument errors "plan", "divergence", "tokens".
[[nodiscard]] StatusOr<Profile> record_divergence(const Profile& profile, absl::string_view plan, double divergence,
                                                  int64_t tokens);

// What the meaning of codes depends on besides a plan: bases, means, variances, corrections, layers, the model.
// Profiles that differ in their plans alone have the same.
[[nodiscard]] uint64_t bases_fingerprint(const Profile& profile);
// What it depends on of a plan: its bands.
[[nodiscard]] uint64_t plan_fingerprint(const Plan& plan);

// Checks the whole content (shapes, bands, finite numbers, disjoint groups, layers in range) and sets the
// fingerprint. Everything that makes a Profile ends with this.
[[nodiscard]] Status finish_profile(Profile& profile);
// Mismatch error that says what differs.
[[nodiscard]] Status check_profile(const Profile& profile, const Model& model);

}  // namespace foldkv
