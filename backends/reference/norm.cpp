#include "backends/reference/norm.h"

#include <cmath>

#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

void norm_heads(const float* weight, double epsilon, int64_t heads, int64_t head_size, double* token) {
  for (int64_t head = 0; head < heads; ++head) {
    double* const x = token + head * head_size;
    const double mean_square = dot(x, x, head_size) / static_cast<double>(head_size);
    const double factor = 1.0 / std::sqrt(mean_square + epsilon);
    for (int64_t i = 0; i < head_size; ++i) x[i] *= factor * static_cast<double>(weight[i]);
  }
}

}  // namespace foldkv::backend::reference
