#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/prepared_rotation.h"

namespace foldkv::test {

// The rotation of a golden case; without a scale it is 1. frequencies must outlive it.
[[nodiscard]] inline backend::Rotation golden_rotation(const nlohmann::json& golden,
                                                       const std::vector<double>& frequencies) {
  const bool half_split = golden["pairing"].get<std::string>() == "half_split";
  return {half_split ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved,
          static_cast<int64_t>(frequencies.size()), golden.value("scale", 1.0), frequencies.data(), nullptr};
}

}  // namespace foldkv::test
