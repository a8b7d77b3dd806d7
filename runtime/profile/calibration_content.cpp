#include "runtime/profile/calibration_content.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"
#include "runtime/profile/content_error.h"

namespace foldkv {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 53;

template <typename Number>
bool all_finite(const std::vector<Number>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](Number number) { return std::isfinite(number); });
}

bool all_zero(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == 0.0; });
}

Status check_sums(const std::string& field, const MomentSums& sums) {
  const int64_t width = sums.width();
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".sum"), width, 1, kMaxWidth));
  if (std::ssize(sums.products) != width * (width + 1) / 2) {
    return content_error(absl::StrCat(field, ".products"), absl::StrCat(sums.products.size(), " numbers"),
                         width * (width + 1) / 2);
  }
  if (std::ssize(sums.pending) % width != 0) {
    return content_error(absl::StrCat(field, ".pending"), absl::StrCat(sums.pending.size(), " numbers"),
                         absl::StrCat("rows of ", width));
  }
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, ".count"), sums.count, 0, kMaxRows));
  if (!all_finite(sums.sum) || !all_finite(sums.products) || !all_finite(sums.pending)) {
    return content_error(field, "numbers that are not finite", "finite ones");
  }
  if (sums.count > 0 || (all_zero(sums.sum) && all_zero(sums.products))) return absl::OkStatus();
  return content_error(field, "sums of no rows", "zeros");
}

Status check_gradients(const std::string& field, const std::vector<MomentSums>& gradients, size_t expected) {
  if (gradients.size() != expected) return content_error(field, gradients.size(), expected);
  for (size_t index = 0; index < gradients.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_sums(absl::StrCat(field, "[", index, "]"), gradients[index]));
  }
  return absl::OkStatus();
}

}  // namespace

Status check_calibration_content(const CalibrationContent& content) {
  FOLDKV_RETURN_IF_ERROR(check_range("model_name", std::ssize(content.model_name), 0, kMaxModelName));
  if (content.skip_tokens < 0) return content_error("skip_tokens", content.skip_tokens, "0 or more");
  FOLDKV_RETURN_IF_ERROR(check_range("samples", content.samples, 0, kMaxRows));
  if (content.groups.empty()) return content_error("groups", "none", "1 or more");
  const bool has_gradients = !content.groups[0].key_gradients.empty();
  for (size_t index = 0; index < content.groups.size(); ++index) {
    const CalibrationGroup& group = content.groups[index];
    const std::string field = absl::StrCat("groups[", index, "]");
    const size_t gradients = has_gradients ? group.layers.size() : 0;
    FOLDKV_RETURN_IF_ERROR(check_sums(absl::StrCat(field, ".keys"), group.keys));
    FOLDKV_RETURN_IF_ERROR(check_sums(absl::StrCat(field, ".values"), group.values));
    FOLDKV_RETURN_IF_ERROR(check_gradients(absl::StrCat(field, ".key_gradients"), group.key_gradients, gradients));
    FOLDKV_RETURN_IF_ERROR(check_gradients(absl::StrCat(field, ".value_gradients"), group.value_gradients, gradients));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
