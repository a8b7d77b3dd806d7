#include "runtime/calibration/solve_options.h"

#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"
#include "runtime/profile/bands.h"
#include "runtime/profile/limits.h"

namespace foldkv {
Status check_solve_options(const SolveOptions& options) {
  FOLDKV_RETURN_IF_ERROR(check_range("latent_width", options.latent_width, 0, kMaxWidth));
  FOLDKV_RETURN_IF_ERROR(check_range("bits", options.bits, kMinBandBits, kMaxBandBits));
  FOLDKV_RETURN_IF_ERROR(check_range("scale_group", options.scale_group, 1, kMaxWidth));
  if (!(options.metric_floor > 0.0 && options.metric_floor <= 1.0)) {
    return argument_error("metric_floor",
                          absl::StrCat("metric_floor: got ", options.metric_floor, ", expected above 0, up to 1"));
  }
  FOLDKV_RETURN_IF_ERROR(check_bands("key_bands", options.key_bands));
  FOLDKV_RETURN_IF_ERROR(check_bands("value_bands", options.value_bands));
  FOLDKV_RETURN_IF_ERROR(check_range("made_by", static_cast<int64_t>(options.made_by.size()), 0, kMaxMadeBy));
  FOLDKV_RETURN_IF_ERROR(check_range("correction_rank", options.correction.rank, 0, kMaxWidth));
  FOLDKV_RETURN_IF_ERROR(check_range("correction_oversample", options.correction.oversample, 0, kMaxWidth));
  return check_range("correction_iterations", options.correction.iterations, 0, kMaxCorrectionIterations);
}

}  // namespace foldkv
