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
StatusOr<std::vector<double>> second_moment(const Sequence& sequence, const SequenceBasisQuestion& question) {
  const int64_t key_width = sequence.model().layer(question.layers.front()).key_width();
  const int64_t width = key_width * std::ssize(question.layers);
  std::vector<float> rows(static_cast<size_t>(std::min(kBlockTokens, question.count) * width));
  std::vector<double> sum(static_cast<size_t>(width));
  std::vector<double> products(static_cast<size_t>(width * width));
  for (int64_t done = 0; done < question.count; done += kBlockTokens) {
    const int64_t count = std::min(kBlockTokens, question.count - done);
    float* place = rows.data();
    for (const int32_t layer : question.layers) {
      const MutableTensorView view{reinterpret_cast<std::byte*>(place), NumberFormat::kF32, count, key_width, width};
      FOLDKV_RETURN_IF_ERROR(read_exact_rows(sequence, layer, question.side, question.first_slot + done, view));
      place += key_width;
    }
    FOLDKV_RETURN_IF_ERROR(
        sequence.runtime().backend().moments({rows.data(), count, width, sum.data(), products.data()}));
  }
  return products;
}

// matrix [rows][width]: column i times factors[i].
void scale_columns(std::vector<double>& matrix, const std::vector<double>& factors) {
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] *= factors[i % factors.size()];
}

std::vector<float> rounded(const std::vector<double>& matrix) { return {matrix.begin(), matrix.end()}; }

}  // namespace

StatusOr<SequenceBasis> find_sequence_basis(const Sequence& sequence, const SequenceBasisQuestion& question) {
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<double> moment, second_moment(sequence, question));
  const auto stacked = static_cast<int64_t>(std::sqrt(static_cast<double>(moment.size())));
  FOLDKV_ASSIGN_OR_RETURN(PrincipalDirections directions, principal_directions(moment, stacked, question.width));
  SequenceBasis result;
  if (!question.balanced) {
    result.basis = rounded(directions.basis);
    return result;
  }
  // The singular values over the root of the count are the spreads of the coordinates of U S.
  constexpr double kSmallestSpread = 1e-4;
  std::vector<double> roots;
  for (int64_t i = 0; i < question.width; ++i) {
    const double spread =
        std::sqrt(directions.variances[static_cast<size_t>(i)] / static_cast<double>(question.count));
    roots.push_back(spread > kSmallestSpread ? std::sqrt(spread) : 1.0);
  }
  const std::vector<Band> bands = {{static_cast<int32_t>(question.width), 4}};
  std::vector<double> projection = directions.basis;
  scale_columns(directions.basis, roots);
  for (double& root : roots) root = 1.0 / root;
  scale_columns(projection, roots);
  rotate_scale_groups(directions.basis, bands, question.width);
  rotate_scale_groups(projection, bands, question.width);
  result.basis = rounded(directions.basis);
  result.projection = rounded(projection);
  return result;
}

}  // namespace foldkv
