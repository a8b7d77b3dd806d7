#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace foldkv {

// Mismatch error when sums that were observed of the model (fingerprint, name) are not of this one. Unnamed fits all.
[[nodiscard]] Status check_same_model(const Model& model, uint64_t fingerprint, const std::string& name);

}  // namespace foldkv
