#include "runtime/calibration/solver.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/calibration/cut_columns.h"
#include "runtime/calibration/principal_directions.h"
#include "runtime/calibration/scale_group_rotation.h"
#include "runtime/calibration/shrinkage.h"
#include "runtime/calibration/weigh_by_metric.h"
#include "runtime/profile/bands.h"

namespace foldkv {
namespace {

std::vector<float> to_f32(const std::vector<double>& numbers) {
  std::vector<float> result;
  result.reserve(numbers.size());
  for (double number : numbers) result.push_back(static_cast<float>(number));
  return result;
}

// What one unit in each coordinate is in rows: the squared length of the column that rebuilds it.
std::vector<double> gains_of(const Metric& metric, const std::vector<double>& directions, int64_t columns) {
  const std::vector<double> basis = multiply_blocks(metric.inverse_roots, metric.block_width, directions, columns);
  std::vector<double> gains(static_cast<size_t>(columns));
  for (size_t at = 0; at < basis.size(); ++at) gains[at % gains.size()] += basis[at] * basis[at];
  return gains;
}

}  // namespace

std::vector<Band> bands_of(const SolveOptions& options, backend::Side side, int64_t key_width, int64_t stacked_width) {
  std::vector<Band> bands = side == backend::Side::kKeys ? options.key_bands : options.value_bands;
  if (bands.empty()) {
    const int64_t width = options.latent_width == 0 ? key_width : options.latent_width;
    bands.push_back({static_cast<int32_t>(std::min(width, stacked_width)), options.bits});
  }
  int64_t left = stacked_width;
  for (Band& band : bands) {
    band.width = static_cast<int32_t>(std::min<int64_t>(band.width, left));
    left -= band.width;
  }
  std::erase_if(bands, [](const Band& band) { return band.width == 0; });
  return bands;
}

StatusOr<SolvedSide> solve_side(backend::Backend& backend, const Moments& moments, const Metric* metric,
                                const std::vector<Band>& bands, const SolveOptions& options) {
  FOLDKV_RETURN_IF_ERROR(options.cancellation.check());
  SolvedSide solved;
  ProfileSide& side = solved.side;
  side.latent_width = width_of(bands);
  FOLDKV_ASSIGN_OR_RETURN(Covariance covariance, moments.covariance(backend, options.centred));
  if (metric != nullptr) weigh_covariance(*metric, covariance.matrix);
  if (moments.count() < moments.width()) {
    const int64_t degrees_of_freedom = moments.count() - (options.centred ? 1 : 0);
    solved.shrinkage = oracle_shrinkage(covariance.matrix, moments.width(), degrees_of_freedom);
    shrink_covariance(covariance.matrix, moments.width(), solved.shrinkage);
  }
  FOLDKV_RETURN_IF_ERROR(options.cancellation.check());
  const int64_t columns = metric == nullptr ? side.latent_width : moments.width();
  FOLDKV_ASSIGN_OR_RETURN(PrincipalDirections directions,
                          principal_directions(covariance.matrix, moments.width(), columns));
  if (metric != nullptr) {
    side.gains = gains_of(*metric, directions.basis, columns);
    cut_columns(directions.basis, columns, side.latent_width);
  }
  if (options.rotate) rotate_scale_groups(directions.basis, bands, options.scale_group);
  if (metric == nullptr) {
    side.basis = to_f32(directions.basis);
  } else {
    const auto times = [&](const std::vector<std::vector<double>>& blocks) {
      return to_f32(multiply_blocks(blocks, metric->block_width, directions.basis, side.latent_width));
    };
    side.basis = times(metric->inverse_roots);
    side.projection = times(metric->roots);
  }
  side.mean = to_f32(covariance.mean);
  side.variances = std::move(directions.variances);
  return solved;
}

}  // namespace foldkv
