#include "backends/reference/moments.h"

namespace foldkv::backend::reference {

Status moments(const MomentsRequest& request) {
  for (int64_t t = 0; t < request.count; ++t) {
    const float* const row = request.rows + t * request.width;
    for (int64_t i = 0; i < request.width; ++i) {
      const double number = static_cast<double>(row[i]);
      double* const products = request.products + i * request.width;
      request.sum[i] += number;
      for (int64_t j = 0; j <= i; ++j) products[j] += number * static_cast<double>(row[j]);
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::reference
