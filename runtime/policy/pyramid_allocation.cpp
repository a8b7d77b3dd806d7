#include "runtime/policy/pyramid_allocation.h"

#include <algorithm>
#include <limits>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

struct Ends {
  int64_t most = 0;
  int64_t least = 0;
};

Status check_shape(const PyramidShape& shape) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  FOLDKV_RETURN_IF_ERROR(check_range("layers", shape.layers, 1, 65'536));
  FOLDKV_RETURN_IF_ERROR(check_range("window", shape.window, 0, kMost));
  FOLDKV_RETURN_IF_ERROR(check_range("tokens", shape.tokens, shape.window, kMost));
  FOLDKV_RETURN_IF_ERROR(check_range("capacity", shape.capacity, shape.window, kMost));
  return check_range("beta", shape.beta, 1, kMost);
}

Ends ends_of(const PyramidShape& shape) {
  const int64_t base = std::min(shape.capacity, shape.tokens) - shape.window;
  if (shape.layers == 1 || shape.tokens < 2 * base) return {base, base};
  const int64_t least = base / shape.beta;
  const int64_t most = std::min(2 * base - least, shape.tokens - shape.window);
  return {most, 2 * base - most};
}

}  // namespace

StatusOr<std::vector<double>> pyramid_weights(const PyramidShape& shape) {
  FOLDKV_RETURN_IF_ERROR(check_shape(shape));
  const Ends ends = ends_of(shape);
  std::vector<double> weights(static_cast<size_t>(shape.layers), static_cast<double>(ends.most));
  for (int64_t layer = 1; layer < shape.layers; ++layer) {
    weights[static_cast<size_t>(layer)] -=
        static_cast<double>(layer * (ends.most - ends.least)) / static_cast<double>(shape.layers - 1);
  }
  return weights;
}

StatusOr<std::vector<int64_t>> pyramid_author_budgets(const PyramidShape& shape) {
  FOLDKV_RETURN_IF_ERROR(check_shape(shape));
  const Ends ends = ends_of(shape);
  const int64_t step = shape.layers == 1 ? 0 : (ends.most - ends.least) / (shape.layers - 1);
  std::vector<int64_t> budgets(static_cast<size_t>(shape.layers));
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    budgets[static_cast<size_t>(layer)] = ends.most - layer * step;
  }
  return budgets;
}

}  // namespace foldkv
