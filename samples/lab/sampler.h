#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// Chooses the next token. Temperature 0 takes the likeliest; otherwise a token is drawn from softmax(logits /
// temperature), the same for the same seed on every machine.
class Sampler {
 public:
  Sampler(double temperature, uint64_t seed) : temperature_(temperature), generator_(seed) {}

  [[nodiscard]] Token choose(std::span<const float> logits);

 private:
  double temperature_;
  std::mt19937_64 generator_;
  std::vector<double> weights_;
};

}  // namespace foldkv_lab
