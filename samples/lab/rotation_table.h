#pragma once

#include <cstdint>
#include <vector>

#include "samples/lab/model.h"

namespace foldkv_lab {

// Cosines and sines of the rotary position embedding of one model.
class RotationTable {
 public:
  explicit RotationTable(const ModelShape& shape)
      : inverse_frequencies_(shape.inverse_frequencies), head_size_(shape.head_size), pairing_(shape.pairing) {}

  // Makes the table reach positions below `end`.
  void extend(int64_t end);

  // Turns one head by its position, which the table must reach.
  void rotate(const float* head, int64_t position, float* rotated) const;
  // The inverse of rotate, and its transpose: gradients of rotated heads become gradients of heads.
  void rotate_back(const float* rotated, int64_t position, float* head) const;

 private:
  // direction: 1 or -1.
  void turn(const float* head, int64_t position, float direction, float* turned) const;

  std::vector<double> inverse_frequencies_;
  int64_t head_size_;
  Pairing pairing_;
  std::vector<float> cosines_;  // [position, pair]
  std::vector<float> sines_;
};

}  // namespace foldkv_lab
