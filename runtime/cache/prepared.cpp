#include "runtime/cache/prepared.h"

#include <cmath>
#include <numeric>
#include <span>

#include "runtime/codec/latent_layout.h"

namespace foldkv {
namespace {

backend::Rotation rotation_of(const LayerRules& layer) {
  backend::Rotation rotation;
  if (!layer.rotation.has_value()) return rotation;
  rotation.pairing = static_cast<backend::Pairing>(layer.rotation->pairing);
  rotation.frequency_count = static_cast<int64_t>(layer.rotation->inverse_frequencies.size());
  rotation.scale = layer.rotation->scale;
  rotation.inverse_frequencies = layer.rotation->inverse_frequencies.data();
  return rotation;
}

backend::AttentionRules rules_of(const LayerRules& layer) {
  backend::AttentionRules rules;
  rules.query_heads = layer.query_heads;
  rules.kv_heads = layer.kv_heads;
  rules.head_size = layer.head_size;
  rules.scale = layer.attention_scale;
  rules.soft_cap = layer.soft_cap;
  rules.window = layer.window;
  rules.rotation = rotation_of(layer);
  return rules;
}

// Layers with equal rotations share one table.
const std::byte* shared_rotation(const PreparedModel& prepared, int64_t layer) {
  for (int64_t earlier = 0; earlier < layer; ++earlier) {
    if (prepared.model->layer(earlier).rotation == prepared.model->layer(layer).rotation) {
      return prepared.layers[static_cast<size_t>(earlier)].rules.rotation.prepared;
    }
  }
  return nullptr;
}

StatusOr<std::byte*> add_block(Allocator& allocator, PreparedModel& prepared, int64_t bytes) {
  FOLDKV_ASSIGN_OR_RETURN(Block block, Block::allocate(allocator, Role::kModel, bytes));
  prepared.blocks.push_back(std::move(block));
  return prepared.blocks.back().data();
}

Status allocate_norm(Allocator& allocator, PreparedModel& prepared, const std::vector<float>& norm,
                     const float*& place) {
  if (norm.empty()) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(std::byte * data, add_block(allocator, prepared, std::ssize(norm) * 4));
  place = reinterpret_cast<const float*>(data);
  return absl::OkStatus();
}

template <typename Number>
Status copy_numbers(backend::Backend& backend, const void* device, std::span<const Number> numbers) {
  return backend.copy_to_device(static_cast<std::byte*>(const_cast<void*>(device)),
                                reinterpret_cast<const std::byte*>(numbers.data()),
                                static_cast<int64_t>(numbers.size_bytes()));
}

Status copy_norm(backend::Backend& backend, const float* device, const std::vector<float>& norm) {
  return norm.empty() ? absl::OkStatus() : copy_numbers(backend, device, std::span<const float>(norm));
}

Status copy_mean(backend::Backend& backend, const Block& block, const std::vector<float>& mean) {
  std::vector<uint16_t> halves(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    halves[i] = f16_from_f32(mean[i]);
    if (!std::isfinite(f32_from_f16(halves[i]))) {
      return with_argument(numeric_error(absl::StrCat("mean ", mean[i], " of coordinate ", i, " is beyond f16")),
                           "profile");
    }
  }
  return copy_numbers(backend, block.data(), std::span<const uint16_t>(halves));
}

// Columns of a basis [rows][columns].
int64_t columns_of(const std::vector<float>& basis, int64_t rows) { return std::ssize(basis) / rows; }

Status allocate_bases(Allocator& allocator, const ProfileSide& source, BasisPair& bases) {
  if (source.basis.empty()) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(bases.basis, Block::allocate(allocator, Role::kProfile, std::ssize(source.basis) * 4));
  if (source.projection.empty()) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(bases.projection,
                          Block::allocate(allocator, Role::kProfile, std::ssize(source.projection) * 4));
  return absl::OkStatus();
}

Status copy_bases(backend::Backend& backend, const BasisPair& bases, const ProfileSide& source) {
  if (source.basis.empty()) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(copy_numbers(backend, bases.basis.data(), std::span<const float>(source.basis)));
  if (source.projection.empty()) return absl::OkStatus();
  return copy_numbers(backend, bases.projection.data(), std::span<const float>(source.projection));
}

// Layers that read another one stand where it stands.
void follow_sources(const std::vector<int32_t>& sources, PreparedProfile& prepared) {
  for (size_t layer = 0; layer < sources.size(); ++layer) {
    prepared.source_of_layer[layer] = sources[layer];
    prepared.place_of_layer[layer] = prepared.place_of_layer[static_cast<size_t>(sources[layer])];
  }
}

Status allocate_fast_basis(Allocator& allocator, const backend::Backend& backend, const ProfileGroup& source,
                           PreparedGroup& group) {
  if (source.keys.basis.empty()) return absl::OkStatus();
  const int64_t rows = source.stacked_width();
  const int64_t bytes = backend.fast_basis_bytes(rows, columns_of(source.keys.basis, rows));
  if (bytes == 0) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(group.fast_keys, Block::allocate(allocator, Role::kProfile, bytes));
  return absl::OkStatus();
}

Status allocate_group(Allocator& allocator, const ProfileGroup& source, PreparedGroup& group) {
  group.layers = source.layers;
  group.key_width = source.key_width;
  group.kind = source.kind;
  group.correction = source.correction;
  FOLDKV_RETURN_IF_ERROR(allocate_bases(allocator, source.keys, group.keys));
  FOLDKV_RETURN_IF_ERROR(allocate_bases(allocator, source.values, group.values));
  const int64_t mean_bytes = source.stacked_width() * 2;
  FOLDKV_ASSIGN_OR_RETURN(group.key_mean, Block::allocate(allocator, Role::kProfile, mean_bytes));
  FOLDKV_ASSIGN_OR_RETURN(group.value_mean, Block::allocate(allocator, Role::kProfile, mean_bytes));
  return absl::OkStatus();
}

}  // namespace

StatusOr<PreparedModel> allocate_prepared_model(Allocator& allocator, const backend::Backend& backend,
                                                std::shared_ptr<const Model> model) {
  PreparedModel prepared;
  prepared.model = std::move(model);
  prepared.layers.resize(static_cast<size_t>(prepared.model->layer_count()));
  for (int64_t index = 0; index < prepared.model->layer_count(); ++index) {
    const LayerRules& source = prepared.model->layer(index);
    PreparedLayer& layer = prepared.layers[static_cast<size_t>(index)];
    layer.rules = rules_of(source);
    layer.norm_epsilon = source.norm_epsilon;
    backend::Rotation& rotation = layer.rules.rotation;
    if (rotation.frequency_count > 0) {
      rotation.prepared = shared_rotation(prepared, index);
      if (rotation.prepared == nullptr) {
        FOLDKV_ASSIGN_OR_RETURN(rotation.prepared, add_block(allocator, prepared, backend.rotation_bytes(rotation)));
      }
    }
    FOLDKV_RETURN_IF_ERROR(allocate_norm(allocator, prepared, source.query_norm, layer.query_norm));
    FOLDKV_RETURN_IF_ERROR(allocate_norm(allocator, prepared, source.key_norm, layer.key_norm));
  }
  return prepared;
}

Status fill_prepared_model(backend::Backend& backend, PreparedModel& prepared) {
  for (int64_t index = 0; index < prepared.model->layer_count(); ++index) {
    const LayerRules& source = prepared.model->layer(index);
    const PreparedLayer& layer = prepared.layers[static_cast<size_t>(index)];
    const backend::Rotation& rotation = layer.rules.rotation;
    if (rotation.frequency_count > 0 && shared_rotation(prepared, index) == nullptr) {
      FOLDKV_RETURN_IF_ERROR(backend.prepare_rotation(rotation, const_cast<std::byte*>(rotation.prepared)));
    }
    FOLDKV_RETURN_IF_ERROR(copy_norm(backend, layer.query_norm, source.query_norm));
    FOLDKV_RETURN_IF_ERROR(copy_norm(backend, layer.key_norm, source.key_norm));
  }
  return absl::OkStatus();
}

StatusOr<PreparedProfile> allocate_prepared_profile(Allocator& allocator, const backend::Backend& backend,
                                                    const Model& model, std::shared_ptr<const Profile> profile,
                                                    backend::Arithmetic arithmetic) {
  PreparedProfile prepared;
  prepared.profile = std::move(profile);
  prepared.arithmetic = arithmetic;
  prepared.place_of_layer.resize(static_cast<size_t>(model.layer_count()));
  prepared.source_of_layer.resize(static_cast<size_t>(model.layer_count()));
  std::iota(prepared.source_of_layer.begin(), prepared.source_of_layer.end(), 0);
  if (prepared.profile == nullptr) return prepared;
  prepared.groups.resize(prepared.profile->groups.size());
  for (size_t index = 0; index < prepared.groups.size(); ++index) {
    PreparedGroup& group = prepared.groups[index];
    const ProfileGroup& source = prepared.profile->groups[index];
    FOLDKV_RETURN_IF_ERROR(allocate_group(allocator, source, group));
    if (arithmetic == backend::Arithmetic::kFast) {
      FOLDKV_RETURN_IF_ERROR(allocate_fast_basis(allocator, backend, source, group));
    }
    for (const Plan& plan : prepared.profile->plans) {
      group.layouts.push_back(latent_layout(latent_format(source, plan.groups[index])));
    }
    for (size_t place = 0; place < group.layers.size(); ++place) {
      prepared.place_of_layer[static_cast<size_t>(group.layers[place])] = {static_cast<int32_t>(index),
                                                                           static_cast<int32_t>(place)};
    }
  }
  follow_sources(prepared.profile->sources, prepared);
  return prepared;
}

Status fill_prepared_profile(backend::Backend& backend, PreparedProfile& prepared) {
  if (prepared.profile != nullptr) {
    for (const Plan& plan : prepared.profile->plans) {
      prepared.expected_energies.push_back(expected_energy(*prepared.profile, plan));
    }
  }
  for (size_t index = 0; index < prepared.groups.size(); ++index) {
    const ProfileGroup& source = prepared.profile->groups[index];
    const PreparedGroup& group = prepared.groups[index];
    FOLDKV_RETURN_IF_ERROR(copy_bases(backend, group.keys, source.keys));
    FOLDKV_RETURN_IF_ERROR(copy_bases(backend, group.values, source.values));
    if (group.fast_keys) {
      const int64_t rows = source.stacked_width();
      FOLDKV_RETURN_IF_ERROR(backend.prepare_fast_basis(group.keys.rebuilding(), rows,
                                                        columns_of(source.keys.basis, rows), group.fast_keys.data()));
    }
    FOLDKV_RETURN_IF_ERROR(copy_mean(backend, group.key_mean, source.keys.mean));
    FOLDKV_RETURN_IF_ERROR(copy_mean(backend, group.value_mean, source.values.mean));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
