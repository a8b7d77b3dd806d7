#include "runtime/model/check_description.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"

namespace foldkv {
namespace {

// Times a position below 2^31 the angle still fits a double with room for its fraction.
constexpr double kMaxFrequency = 65536.0;
constexpr double kDefaultNormEpsilon = 1e-6;
constexpr double kMaxF32 = std::numeric_limits<float>::max();

// The fields of one layer, named for errors.
class LayerCheck {
 public:
  explicit LayerCheck(int64_t layer) : prefix_(absl::StrCat("layers[", layer, "].")) {}

  template <typename Got>
  [[nodiscard]] Status error(absl::string_view field, Got got, absl::string_view expected) const {
    return argument_error(absl::StrCat(prefix_, field),
                          absl::StrCat(prefix_, field, ": got ", got, ", expected ", expected));
  }

  [[nodiscard]] Status range(absl::string_view field, int64_t got, int64_t low, int64_t high) const {
    return check_range(absl::StrCat(prefix_, field), got, low, high);
  }

  // Conversion to f32 in kernels must not overflow; NaN fails both comparisons.
  [[nodiscard]] Status positive(absl::string_view field, double got) const {
    if (got > 0.0 && got <= kMaxF32) return absl::OkStatus();
    return error(field, got, "a finite number above 0");
  }

 private:
  std::string prefix_;
};

void set_defaults(LayerRules& layer) {
  if (layer.attention_scale == 0.0 && layer.head_size > 0) {
    layer.attention_scale = 1.0 / std::sqrt(static_cast<double>(layer.head_size));
  }
  if (layer.norm_epsilon == 0.0) layer.norm_epsilon = kDefaultNormEpsilon;
  if (layer.rotation.has_value() && layer.rotation->scale == 0.0) layer.rotation->scale = 1.0;
}

Status check_heads(const LayerRules& layer, const LayerCheck& check) {
  FOLDKV_RETURN_IF_ERROR(check.range("head_size", layer.head_size, 1, kMaxHeadSize));
  FOLDKV_RETURN_IF_ERROR(check.range("kv_heads", layer.kv_heads, 1, kMaxWidth / layer.head_size));
  FOLDKV_RETURN_IF_ERROR(check.range("query_heads", layer.query_heads, 1, kMaxWidth / layer.head_size));
  if (layer.query_heads % layer.kv_heads != 0) {
    return check.error("query_heads", layer.query_heads, absl::StrCat("a multiple of kv_heads, ", layer.kv_heads));
  }
  return absl::OkStatus();
}

Status check_rotation(const RotationRules& rotation, int64_t head_size, const LayerCheck& check) {
  if (rotation.pairing != Pairing::kHalfSplit && rotation.pairing != Pairing::kInterleaved) {
    return check.error("rotation.pairing", static_cast<int32_t>(rotation.pairing), "1 (half-split) or 2 (interleaved)");
  }
  const auto frequency_count = std::ssize(rotation.inverse_frequencies);
  if (frequency_count < 1 || 2 * frequency_count > head_size) {
    return check.error("rotation.frequency_count", frequency_count,
                       absl::StrCat("1 to head_size / 2, ", head_size / 2));
  }
  for (int64_t index = 0; index < frequency_count; ++index) {
    const double frequency = rotation.inverse_frequencies[static_cast<size_t>(index)];
    if (!(std::abs(frequency) <= kMaxFrequency)) {
      return check.error(absl::StrCat("rotation.inverse_frequencies[", index, "]"), frequency,
                         absl::StrCat("a finite number of magnitude ", kMaxFrequency, " at most"));
    }
  }
  return check.positive("rotation.scale", rotation.scale);
}

Status check_norm(absl::string_view field, const std::vector<float>& gains, int64_t head_size,
                  const LayerCheck& check) {
  if (!gains.empty() && std::ssize(gains) != head_size) {
    return check.error(field, absl::StrCat(gains.size(), " gains"), absl::StrCat("head_size, ", head_size));
  }
  const auto bad = std::find_if(gains.begin(), gains.end(), [](float gain) { return !std::isfinite(gain); });
  if (bad == gains.end()) return absl::OkStatus();
  return check.error(absl::StrCat(field, "[", bad - gains.begin(), "]"), *bad, "a finite number");
}

Status check_layer(const LayerRules& layer, const LayerCheck& check) {
  FOLDKV_RETURN_IF_ERROR(check_heads(layer, check));
  if (layer.rotation.has_value()) {
    FOLDKV_RETURN_IF_ERROR(check_rotation(*layer.rotation, layer.head_size, check));
  }
  if (layer.window < 0) return check.error("window", layer.window, "0 (none) or more");
  FOLDKV_RETURN_IF_ERROR(check.positive("attention_scale", layer.attention_scale));
  if (layer.soft_cap != 0.0) FOLDKV_RETURN_IF_ERROR(check.positive("soft_cap", layer.soft_cap));
  FOLDKV_RETURN_IF_ERROR(check_norm("query_norm", layer.query_norm, layer.head_size, check));
  FOLDKV_RETURN_IF_ERROR(check_norm("key_norm", layer.key_norm, layer.head_size, check));
  return check.positive("norm_epsilon", layer.norm_epsilon);
}

}  // namespace

Status complete_description(ModelDescription& description) {
  const auto layer_count = std::ssize(description.layers);
  FOLDKV_RETURN_IF_ERROR(check_range("layer_count", layer_count, 1, kMaxLayers));
  FOLDKV_RETURN_IF_ERROR(check_range("hidden_size", description.hidden_size, 0, kMaxWidth));
  FOLDKV_RETURN_IF_ERROR(check_range("name", std::ssize(description.name), 0, kMaxModelName));
  for (int64_t index = 0; index < layer_count; ++index) {
    LayerRules& layer = description.layers[static_cast<size_t>(index)];
    set_defaults(layer);
    FOLDKV_RETURN_IF_ERROR(check_layer(layer, LayerCheck(index)));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
