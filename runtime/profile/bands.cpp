#include "runtime/profile/bands.h"

#include <cstddef>
#include <string>

#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"
#include "runtime/profile/limits.h"

namespace foldkv {
namespace {

Status check_bits(const std::string& field, const std::vector<Band>& bands, size_t index) {
  const int32_t bits = bands[index].bits;
  if (bits != 0 && (bits < kMinBandBits || bits > kMaxBandBits)) {
    return argument_error(field, absl::StrCat(field, ": got ", bits, ", expected ", kMinBandBits, " to ", kMaxBandBits,
                                              ", or 0 (not stored)"));
  }
  if (bits == 0 && index == 0) {
    return argument_error(field, absl::StrCat(field, ": got 0, expected a first band that is stored"));
  }
  if (bits != 0 && index > 0 && bands[index - 1].bits == 0) {
    return argument_error(field, absl::StrCat(field, ": got ", bits, ", expected 0 after a band that is not stored"));
  }
  return absl::OkStatus();
}

}  // namespace

Status check_bands(absl::string_view field, const std::vector<Band>& bands) {
  for (size_t index = 0; index < bands.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, "[", index, "].width"), bands[index].width, 1, kMaxWidth));
    FOLDKV_RETURN_IF_ERROR(check_bits(absl::StrCat(field, "[", index, "].bits"), bands, index));
  }
  return absl::OkStatus();
}

int64_t width_of(const std::vector<Band>& bands) {
  int64_t width = 0;
  for (const Band& band : bands) width += band.width;
  return width;
}

}  // namespace foldkv
