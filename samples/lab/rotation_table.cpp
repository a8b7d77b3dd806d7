#include "samples/lab/rotation_table.h"

#include <algorithm>
#include <cmath>

namespace foldkv_lab {

void RotationTable::extend(int64_t end) {
  const size_t pairs = inverse_frequencies_.size();
  if (pairs == 0) return;
  for (size_t position = cosines_.size() / pairs; position < static_cast<size_t>(end); ++position) {
    for (const double frequency : inverse_frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      cosines_.push_back(static_cast<float>(std::cos(angle)));
      sines_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
}

void RotationTable::rotate(const float* head, int64_t position, float* rotated) const {
  turn(head, position, 1.0f, rotated);
}

void RotationTable::rotate_back(const float* rotated, int64_t position, float* head) const {
  turn(rotated, position, -1.0f, head);
}

void RotationTable::turn(const float* head, int64_t position, float direction, float* turned) const {
  const int64_t pairs = static_cast<int64_t>(inverse_frequencies_.size());
  const float* cosines = cosines_.data() + position * pairs;
  const float* sines = sines_.data() + position * pairs;
  // Interleaved pairs are neighbours; half-split ones stand apart by the number of pairs.
  const int64_t step = pairing_ == Pairing::kInterleaved ? 2 : 1;
  const int64_t distance = pairing_ == Pairing::kInterleaved ? 1 : pairs;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float sine = direction * sines[pair];
    const float first = head[pair * step];
    const float second = head[pair * step + distance];
    turned[pair * step] = first * cosines[pair] - second * sine;
    turned[pair * step + distance] = first * sine + second * cosines[pair];
  }
  std::copy(head + 2 * pairs, head + head_size_, turned + 2 * pairs);
}

}  // namespace foldkv_lab
