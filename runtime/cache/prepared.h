#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/interface/backend.h"
#include "runtime/calibration/expected_energy.h"
#include "runtime/memory/block.h"
#include "runtime/model/model.h"
#include "runtime/profile/profile.h"

// What a model and a profile need on the device: made once for each runtime and shared by all sequences.
// allocate_* takes the memory (or counts it), fill_* writes it.
namespace foldkv {

struct PreparedLayer {
  backend::AttentionRules rules;
  const float* query_norm = nullptr;  // null: none
  const float* key_norm = nullptr;
  double norm_epsilon = 0.0;
};

struct PreparedModel {
  std::shared_ptr<const Model> model;
  std::vector<PreparedLayer> layers;
  std::vector<Block> blocks;
};

[[nodiscard]] StatusOr<PreparedModel> allocate_prepared_model(Allocator& allocator, const backend::Backend& backend,
                                                              std::shared_ptr<const Model> model);
[[nodiscard]] Status fill_prepared_model(backend::Backend& backend, PreparedModel& prepared);

// f32 [layers * key_width][latent width].
struct BasisPair {
  Block basis;
  Block projection;  // empty: the basis

  [[nodiscard]] const float* rebuilding() const { return reinterpret_cast<const float*>(basis.data()); }
  [[nodiscard]] const float* projecting() const {
    return reinterpret_cast<const float*>((projection ? projection : basis).data());
  }
};

struct PreparedGroup {
  std::vector<backend::LatentLayout> layouts;  // of the profile's plans
  std::vector<int32_t> layers;
  int64_t key_width = 0;  // of one layer
  GroupKind kind = GroupKind::kLearned;
  CorrectionRules correction;
  BasisPair keys, values;      // of a learned group
  Block fast_keys;             // the basis of keys for fast arithmetic: empty where nobody has use for it
  Block key_mean, value_mean;  // f16 [layers * key_width]

  [[nodiscard]] const BasisPair& bases(backend::Side side) const {
    return side == backend::Side::kKeys ? keys : values;
  }

  [[nodiscard]] int64_t stacked_width() const { return static_cast<int64_t>(layers.size()) * key_width; }
};

struct GroupPlace {
  int32_t group = -1;  // -1: the layer stays exact
  int32_t index = 0;   // among the group's layers
};

struct PreparedProfile {
  std::shared_ptr<const Profile> profile;  // null: none, every layer stays exact
  backend::Arithmetic arithmetic = backend::Arithmetic::kExact;  // that it serves
  std::vector<PreparedGroup> groups;
  std::vector<GroupPlace> place_of_layer;
  std::vector<int32_t> source_of_layer;  // the layer whose keys and values it reads, its own as a rule
  std::vector<Energies> expected_energies;  // of the profile's plans
};

[[nodiscard]] StatusOr<PreparedProfile> allocate_prepared_profile(Allocator& allocator, const backend::Backend& backend,
                                                                  const Model& model,
                                                                  std::shared_ptr<const Profile> profile,
                                                                  backend::Arithmetic arithmetic);
// Numeric error when a mean does not fit f16.
[[nodiscard]] Status fill_prepared_profile(backend::Backend& backend, PreparedProfile& prepared);

}  // namespace foldkv
