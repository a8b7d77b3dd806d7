#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace foldkv {

// How much the model's prediction moves when keys or values of one layer are perturbed.
struct LayerSensitivity {
  double divergence = 0.0;  // KL(intact || perturbed) in nats: mean over examples of each one's mean over rows
  int64_t rows = 0;         // predictions that were compared
  int64_t examples = 0;     // 0: not measured

  bool operator==(const LayerSensitivity&) const = default;
};

// What was measured of one model and how.
struct ProfileSensitivity {
  double scale = 0.0;  // of the perturbation
  uint64_t seed = 0;
  std::string text;    // names what was read
  std::vector<LayerSensitivity> keys, values;  // one for each layer of the model

  bool operator==(const ProfileSensitivity&) const = default;
};

}  // namespace foldkv
