#pragma once

#include <cstdint>

#include "backends/cpu/engine.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/rotation_table.h"
#include "backends/interface/operations.h"

namespace foldkv::backend::cpu {

// Of a layer, all heads.
struct AttendGeometry {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t group = 0;       // query heads that share a KV head
  int64_t head_size = 0;
  int64_t head_width = 0;  // padded
  int64_t key_latents = 0;    // stored width
  int64_t value_latents = 0;  // stored width
  int64_t value_width = 0;    // of the latents of values, padded
  int64_t correction_rank = 0;
  int64_t rotated_pairs = 0;

  [[nodiscard]] static AttendGeometry of(const AttendShape& shape);
  [[nodiscard]] static AttendGeometry of(const AttentionRules& rules, const LatentLayer& latent);
};

[[nodiscard]] bool has_integer_keys(Arithmetic arithmetic, const LatentLayer& latent);

// What attention and scores of a layer have in common: where queries and keys come from.
struct AttendInputs {
  const Engine& engine;
  const AttentionRules& rules;
  const ExactLayout& exact_layout;
  const LatentLayer& latent;
  const float* queries;  // [rows][query heads][head size]
  AttendGeometry geometry;
  RotationTable rotation;
  bool integer_keys;  // latent keys are rebuilt in integers

  template <typename Request>
  [[nodiscard]] static AttendInputs of(const Engine& engine, const Request& request) {
    return {engine,          request.rules, request.exact_layout, request.latent,
            request.queries, AttendGeometry::of(request.rules, request.latent),
            rotation_table(request.rules.rotation), has_integer_keys(request.arithmetic, request.latent)};
  }
};

}  // namespace foldkv::backend::cpu
