#include "samples/lab/sampler.h"

#include <cmath>

#include "samples/lab/divergence.h"

namespace foldkv_lab {

Token Sampler::choose(std::span<const float> logits) {
  const int64_t top = top_token(logits);
  if (!(temperature_ > 0)) return static_cast<Token>(top);
  const double largest = static_cast<double>(logits[static_cast<size_t>(top)]);
  weights_.resize(logits.size());
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = std::exp((static_cast<double>(logits[i]) - largest) / temperature_);
    total += weights_[i];
  }
  // The standard's distributions differ between libraries; its generators do not.
  double threshold = static_cast<double>(generator_() >> 11) * 0x1p-53 * total;
  for (size_t i = 0; i < weights_.size(); ++i) {
    threshold -= weights_[i];
    if (threshold < 0) return static_cast<Token>(i);
  }
  return static_cast<Token>(top);
}

}  // namespace foldkv_lab
