#include "backends/cpu/attend_inputs.h"

#include "backends/cpu/integer_tile.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {

AttendGeometry AttendGeometry::of(const AttendShape& shape) {
  AttendGeometry geometry;
  geometry.query_heads = shape.query_heads;
  geometry.kv_heads = shape.kv_heads;
  geometry.group = shape.kv_heads > 0 ? shape.query_heads / shape.kv_heads : 0;
  geometry.head_size = shape.head_size;
  geometry.head_width = round_up(shape.head_size, kWidthPadding);
  geometry.key_latents = shape.key_latent_width;
  geometry.value_latents = shape.value_latent_width;
  geometry.value_width = round_up(shape.value_latent_width, kWidthPadding);
  geometry.correction_rank = shape.correction_rank;
  geometry.rotated_pairs = shape.head_size / 2;
  return geometry;
}

AttendGeometry AttendGeometry::of(const AttentionRules& rules, const LatentLayer& latent) {
  AttendShape shape;
  shape.query_heads = rules.query_heads;
  shape.kv_heads = rules.kv_heads;
  shape.head_size = rules.head_size;
  if (latent.layout != nullptr) {
    shape.key_latent_width = latent.layout->keys.stored_width;
    shape.value_latent_width = latent.layout->values.stored_width;
    shape.correction_rank = latent.layout->correction_rank;
  }
  AttendGeometry geometry = of(shape);
  geometry.rotated_pairs = rules.rotation.frequency_count;
  return geometry;
}

bool has_integer_keys(Arithmetic arithmetic, const LatentLayer& latent) {
  return arithmetic == Arithmetic::kFast && latent.fast_key_basis != nullptr && takes_integers(latent.layout->keys);
}

}  // namespace foldkv::backend::cpu
