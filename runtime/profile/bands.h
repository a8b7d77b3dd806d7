#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/profile/profile.h"

namespace foldkv {

// Checks that every band has a width and a legal rate, that the first is stored and that those that are not stored come
// last. Argument errors name "<field>[1].bits", say.
[[nodiscard]] Status check_bands(absl::string_view field, const std::vector<Band>& bands);

// Latent coordinates of all bands, stored or not.
[[nodiscard]] int64_t width_of(const std::vector<Band>& bands);

}  // namespace foldkv
