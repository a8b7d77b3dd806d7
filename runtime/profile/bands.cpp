#include "runtime/profile/bands.h"

#include <cstddef>
#include <string>

#include "backends/interface/trellis.h"
#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"
#include "runtime/profile/limits.h"

namespace foldkv {
namespace {

Status check_rate(const std::string& field, const Band& band) {
  if (band.bits == 0) return absl::OkStatus();
  if (band.code == backend::Code::kTrellis) {
    if (backend::find_trellis_rate(band.bits, band.step) != nullptr) return absl::OkStatus();
    return argument_error(field, absl::StrCat(field, ": got ", band.bits, " for ", band.step,
                                              " coordinates, expected 1 to 4 for one or 1 or 3 for two of a trellis"));
  }
  if (band.code == backend::Code::kHalf) {
    if (band.bits == kHalfBits && band.step == 1) return absl::OkStatus();
    return argument_error(field, absl::StrCat(field, ": got ", band.bits, " for ", band.step,
                                              " coordinates, expected ", kHalfBits, " for one half"));
  }
  if (band.bits >= kMinBandBits && band.bits <= kMaxBandBits && band.step == 1) return absl::OkStatus();
  return argument_error(field, absl::StrCat(field, ": got ", band.bits, " for ", band.step, " coordinates, expected ",
                                            kMinBandBits, " to ", kMaxBandBits, " for one, or 0 (not stored)"));
}

Status check_order(const std::string& field, const std::vector<Band>& bands, size_t index) {
  const int32_t bits = bands[index].bits;
  if (bits == 0 && index == 0) {
    return argument_error(field, absl::StrCat(field, ": got 0, expected a first band that is stored"));
  }
  if (bits != 0 && index > 0 && bands[index - 1].bits == 0) {
    return argument_error(field, absl::StrCat(field, ": got ", bits, ", expected 0 after a band that is not stored"));
  }
  return absl::OkStatus();
}

Status check_code(const std::string& field, const std::vector<Band>& bands, size_t index) {
  const auto code = static_cast<int32_t>(bands[index].code);
  const auto last = static_cast<int32_t>(backend::Code::kChannel);
  if (code < 0 || code > last) {
    return argument_error(field, absl::StrCat(field, ": got ", code, ", expected 0 to ", last));
  }
  // Halves are read as they lie.
  const bool mixed = bands[index].bits > 0 && (bands[index].code == backend::Code::kHalf) !=
                                                  (bands[0].code == backend::Code::kHalf);
  return mixed ? argument_error(field, absl::StrCat(field, ": got ", code, " after ",
                                                    static_cast<int32_t>(bands[0].code), ": all are halves, or none"))
               : absl::OkStatus();
}

}  // namespace

Status check_bands(absl::string_view field, const std::vector<Band>& bands) {
  for (size_t index = 0; index < bands.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat(field, "[", index, "].width"), bands[index].width, 1, kMaxWidth));
    FOLDKV_RETURN_IF_ERROR(check_code(absl::StrCat(field, "[", index, "].code"), bands, index));
    const std::string bits = absl::StrCat(field, "[", index, "].bits");
    FOLDKV_RETURN_IF_ERROR(check_rate(bits, bands[index]));
    FOLDKV_RETURN_IF_ERROR(check_order(bits, bands, index));
  }
  return absl::OkStatus();
}

int64_t width_of(const std::vector<Band>& bands) {
  int64_t width = 0;
  for (const Band& band : bands) width += band.width;
  return width;
}

}  // namespace foldkv
