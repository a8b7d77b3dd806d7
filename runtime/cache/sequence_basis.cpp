#include "runtime/cache/sequence_basis.h"

#include <algorithm>
#include <cmath>

#include "runtime/cache/exact_rows.h"
#include "runtime/calibration/principal_directions.h"
#include "runtime/calibration/scale_group_rotation.h"

namespace foldkv {
namespace {

// Tokens copied to the heap at once.
constexpr int64_t kBlockTokens = 256;

// X^T X [width][width], the lower triangle.
StatusOr<std::vector<double>> second_moment(backend::Backend& backend, const backend::StackedRows& rows) {
  const int64_t width = rows.width();
  std::vector<float> block(static_cast<size_t>(std::min(kBlockTokens, rows.count) * width));
  std::vector<double> sum(static_cast<size_t>(width));
  std::vector<double> products(static_cast<size_t>(width * width));
  for (int64_t done = 0; done < rows.count; done += kBlockTokens) {
    const int64_t count = std::min(kBlockTokens, rows.count - done);
    FOLDKV_RETURN_IF_ERROR(read_stacked_rows(backend, rows, done, count, block.data()));
    FOLDKV_RETURN_IF_ERROR(backend.moments({block.data(), count, width, sum.data(), products.data()}));
  }
  return products;
}

// matrix [rows][width]: column i times factors[i].
void scale_columns(std::vector<double>& matrix, const std::vector<double>& factors) {
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] *= factors[i % factors.size()];
}

std::vector<float> rounded(const std::vector<double>& matrix) { return {matrix.begin(), matrix.end()}; }

}  // namespace

StatusOr<SequenceBasis> find_sequence_basis(backend::Backend& backend, const backend::StackedRows& rows, int64_t width,
                                            bool balanced) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> moment, second_moment(backend, rows));
  FOLDKV_ASSIGN_OR_RETURN(PrincipalDirections directions, principal_directions(moment, rows.width(), width));
  SequenceBasis result;
  if (!balanced) {
    result.basis = rounded(directions.basis);
    return result;
  }
  // The singular values over the root of the count are the spreads of the coordinates of U S.
  constexpr double kSmallestSpread = 1e-4;
  std::vector<double> roots;
  for (int64_t i = 0; i < width; ++i) {
    const double spread =
        std::sqrt(directions.variances[static_cast<size_t>(i)] / static_cast<double>(rows.count));
    roots.push_back(spread > kSmallestSpread ? std::sqrt(spread) : 1.0);
  }
  const std::vector<Band> bands = {{static_cast<int32_t>(width), 4}};
  std::vector<double> projection = directions.basis;
  scale_columns(directions.basis, roots);
  for (double& root : roots) root = 1.0 / root;
  scale_columns(projection, roots);
  rotate_scale_groups(directions.basis, bands, width);
  rotate_scale_groups(projection, bands, width);
  result.basis = rounded(directions.basis);
  result.projection = rounded(projection);
  return result;
}

}  // namespace foldkv
