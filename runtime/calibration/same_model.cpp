#include "runtime/calibration/same_model.h"

#include "absl/strings/str_format.h"

namespace foldkv {

Status check_same_model(const Model& model, uint64_t fingerprint, const std::string& name) {
  const bool other_name = !name.empty() && !model.name().empty() && name != model.name();
  if (fingerprint == model.fingerprint() && !other_name) return absl::OkStatus();
  return mismatch_error(absl::StrFormat("the sums of calibration are of different models: %016x \"%s\" and %016x \"%s\"",
                                        model.fingerprint(), model.name(), fingerprint, name));
}

}  // namespace foldkv
