#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/model.h"
#include "runtime/profile/profile.h"

namespace foldkv::test {

// Five layers of key width 2 without a window. Every number in it is exact in binary, so that its fingerprint is the
// same everywhere.
[[nodiscard]] ModelDescription profile_model_description();

// A small profile for that model: layers 0 and 1 share latents, layer 3 has its own, 2 and 4 are exact. Finished.
// tests/data/profile_0_1.fkvp holds it as version 0.1 wrote it, so it may never change.
[[nodiscard]] Profile sample_profile();

// Of the five layers' values, one of which was not measured; no keys were.
[[nodiscard]] ProfileSensitivity sample_sensitivity();

// Every field, compared one by one.
[[nodiscard]] bool equal(const Profile& a, const Profile& b);

}  // namespace foldkv::test
