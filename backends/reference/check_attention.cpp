#include "backends/reference/check_attention.h"

#include "backends/interface/trellis.h"
#include "backends/reference/head.h"

namespace foldkv::backend::reference {
namespace {

Status check_plane(const LatentPlane& plane, absl::string_view side) {
  for (const ScaleGroup& group : plane.scale_groups) {
    if (group.code == Code::kTrellis && find_trellis_rate(group.bits, group.step) == nullptr) {
      return unsupported_error(
          absl::StrCat(side, " latents with a trellis of ", group.bits, " bits for ", group.step, " coordinates"));
    }
    const bool coded = group.code != Code::kTrellis && group.code != Code::kHalf;
    if (coded && (group.bits < 2 || group.bits > 8)) {
      return unsupported_error(absl::StrCat(side, " latents of ", group.bits, " bits, expected 2 to 8"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status check_attention(const AttentionRules& rules, const LatentLayout* layout) {
  FOLDKV_RETURN_IF_ERROR(check_head_size(rules.head_size));
  if (rules.kv_heads < 1 || rules.query_heads < 1 || rules.query_heads % rules.kv_heads != 0) {
    return unsupported_error(
        absl::StrCat(rules.query_heads, " query heads over ", rules.kv_heads, " KV heads, expected a multiple"));
  }
  if (rules.rotation.frequency_count < 0 || 2 * rules.rotation.frequency_count > rules.head_size) {
    return unsupported_error(absl::StrCat(rules.rotation.frequency_count, " rotation frequencies in a head of ",
                                          rules.head_size, ", expected at most half of it"));
  }
  if (layout == nullptr) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(check_plane(layout->keys, "key"));
  return check_plane(layout->values, "value");
}

}  // namespace foldkv::backend::reference
