#include "runtime/calibration/sample_means.h"

#include <Eigen/Core>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr int64_t kWidth = 5;

RowMatrix covariance_of(const RowMatrix& rows) {
  const RowMatrix centred = rows.rowwise() - rows.colwise().mean();
  return centred.transpose() * centred;
}

TEST_CASE("what remains is the covariance about each sample's own mean, whichever way samples are cut and merged") {
  test::Random random(9);
  const std::vector<int64_t> counts = {40, 7, 23};
  RowMatrix within = RowMatrix::Zero(kWidth, kWidth);
  RowMatrix all(70, kWidth);
  SampleMeans whole(kWidth);
  SampleMeans cut(kWidth);
  SampleMeans last(kWidth);
  int64_t first = 0;
  for (size_t sample = 0; sample < counts.size(); ++sample) {
    std::vector<float> numbers = random.normals<float>(counts[sample] * kWidth);
    for (float& number : numbers) number += 10.0f * static_cast<float>(sample);
    const RowMatrix rows =
        Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
            numbers.data(), counts[sample], kWidth)
            .cast<double>();
    within += covariance_of(rows);
    all.middleRows(first, counts[sample]) = rows;
    first += counts[sample];
    whole.observe(numbers.data(), counts[sample], true);
    SampleMeans& target = sample == 2 ? last : cut;
    target.observe(numbers.data(), 3, true);
    target.observe(numbers.data() + 3 * kWidth, 0, false);
    target.observe(numbers.data() + 3 * kWidth, counts[sample] - 3, false);
  }
  cut.merge(last);
  const RowMatrix mean = all.colwise().mean();
  const std::vector<double> mean_numbers(mean.data(), mean.data() + kWidth);
  for (const SampleMeans* samples : {&whole, &cut}) {
    const RowMatrix total = covariance_of(all) / 70.0;
    std::vector<double> covariance(total.data(), total.data() + total.size());
    samples->take_out(mean_numbers, covariance);
    for (int64_t i = 0; i < kWidth; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        CHECK(covariance[static_cast<size_t>(i * kWidth + j)] == doctest::Approx(within(i, j) / 70.0).epsilon(1e-9));
      }
    }
  }
}

}  // namespace
}  // namespace foldkv
