#include <cmath>

#include "backends/cpu/attend.h"
#include "backends/interface/trellis.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int kFewestBits = 2;
constexpr int kMostBits = 8;

Status check_heads(const AttentionRules& rules) {
  if (rules.head_size < 1 || rules.head_size > kLargestHead) {
    return with_argument(unsupported_error(absl::StrCat("the cpu backend has no attention for head size ",
                                                        rules.head_size, ", only for 1 to ", kLargestHead)),
                         "head_size");
  }
  if (rules.kv_heads < 1 || rules.query_heads < 1 || rules.query_heads % rules.kv_heads != 0) {
    return with_argument(
        unsupported_error(absl::StrCat("the cpu backend has no attention for ", rules.query_heads, " query heads and ",
                                       rules.kv_heads, " KV heads: the first must be a multiple of the second")),
        "query_heads");
  }
  return absl::OkStatus();
}

Status check_rules(const AttentionRules& rules) {
  const int64_t rotated = 2 * rules.rotation.frequency_count;
  if (rotated < 0 || rotated > rules.head_size) {
    return with_argument(unsupported_error(absl::StrCat("the cpu backend has no rotation of ", rotated,
                                                        " numbers in heads of ", rules.head_size)),
                         "rotation");
  }
  if (rules.window < 0) {
    return with_argument(unsupported_error(absl::StrCat("the cpu backend has no window of ", rules.window)), "window");
  }
  if (!(rules.soft_cap >= 0.0) || std::isinf(rules.soft_cap)) {
    return with_argument(unsupported_error(absl::StrCat("the cpu backend has no soft cap of ", rules.soft_cap)),
                         "soft_cap");
  }
  return absl::OkStatus();
}

Status check_plane(const LatentPlane& plane, absl::string_view name) {
  int64_t coordinate = 0;
  for (const ScaleGroup& group : plane.scale_groups) {
    if (group.code == Code::kTrellis && find_trellis_rate(group.bits, group.step) == nullptr) {
      return with_argument(unsupported_error(absl::StrCat("the cpu backend has no ", name, " with a trellis of ",
                                                          group.bits, " bits for ", group.step, " coordinates")),
                           "bits");
    }
    const bool coded = group.code != Code::kTrellis && group.code != Code::kHalf;
    if (coded && (group.bits < kFewestBits || group.bits > kMostBits)) {
      return with_argument(unsupported_error(absl::StrCat("the cpu backend has no ", name, " of ", group.bits,
                                                          " bits, only of ", kFewestBits, " to ", kMostBits)),
                           "bits");
    }
    if (group.first != coordinate || group.count < 1) {
      return with_argument(unsupported_error(absl::StrCat("the cpu backend has no ", name, " whose scale groups leave "
                                                          "gaps: coordinate ", coordinate, " is missing")),
                           "bands");
    }
    coordinate += group.count;
  }
  if (coordinate != plane.stored_width) {
    return with_argument(
        unsupported_error(absl::StrCat("the cpu backend has no ", name, " whose scale groups hold ", coordinate,
                                       " coordinates of a stored width of ", plane.stored_width)),
        "bands");
  }
  return absl::OkStatus();
}

}  // namespace

Status check_attention(const AttentionRules& rules, const LatentLayout* layout) {
  FOLDKV_RETURN_IF_ERROR(check_heads(rules));
  FOLDKV_RETURN_IF_ERROR(check_rules(rules));
  if (layout == nullptr) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(check_plane(layout->keys, "key latents"));
  return check_plane(layout->values, "value latents");
}

}  // namespace foldkv::backend::cpu
