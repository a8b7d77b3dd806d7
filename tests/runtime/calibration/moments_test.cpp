#include "runtime/calibration/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/calibration/sample_text.h"
#include "tests/runtime/calibration/toy_backend.h"

namespace foldkv {
namespace {

// The definition, in two passes and long double.
Covariance direct(const std::vector<float>& rows, int64_t width, bool centred) {
  const auto count = static_cast<int64_t>(rows.size()) / width;
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<long double>(rows[static_cast<size_t>(row * width + column)]);
  };
  std::vector<long double> mean(static_cast<size_t>(width));
  for (int64_t row = 0; centred && row < count; ++row) {
    for (int64_t column = 0; column < width; ++column) mean[static_cast<size_t>(column)] += at(row, column);
  }
  for (long double& number : mean) number /= static_cast<long double>(count);
  Covariance result;
  for (long double number : mean) result.mean.push_back(static_cast<double>(number));
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      long double sum = 0;
      for (int64_t row = 0; row < count; ++row) {
        sum += (at(row, i) - mean[static_cast<size_t>(i)]) * (at(row, j) - mean[static_cast<size_t>(j)]);
      }
      result.matrix.push_back(static_cast<double>(sum / static_cast<long double>(count)));
    }
  }
  return result;
}

// The largest difference in the lower triangle, relative to the deviations of the two columns.
double difference(const Covariance& got, const Covariance& expected, int64_t width) {
  double largest = 0.0;
  const auto variance = [&](int64_t i) { return expected.matrix[static_cast<size_t>(i * width + i)]; };
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const auto at = static_cast<size_t>(i * width + j);
      const double off = std::abs(got.matrix[at] - expected.matrix[at]) / std::sqrt(variance(i) * variance(j));
      largest = std::max(largest, off);
    }
  }
  return largest;
}

double mean_difference(const Covariance& got, const Covariance& expected) {
  double largest = 0.0;
  for (size_t i = 0; i < got.mean.size(); ++i) {
    largest = std::max(largest, std::abs(got.mean[i] - expected.mean[i]) / (1.0 + std::abs(expected.mean[i])));
  }
  return largest;
}

struct Observer {
  explicit Observer(int64_t width) : moments(width), scratch(width) {}

  void add(const std::vector<float>& rows, int64_t first, int64_t count) {
    CHECK(moments.observe(backend, rows.data() + first * moments.width(), count, scratch).ok());
  }
  void add(const std::vector<float>& rows) { add(rows, 0, static_cast<int64_t>(rows.size()) / moments.width()); }
  void merge(const Observer& other) { CHECK(moments.merge(backend, other.moments, scratch).ok()); }
  [[nodiscard]] Covariance covariance(bool centred = true) { return moments.covariance(backend, centred).value(); }

  test::ToyBackend backend;
  Moments moments;
  MomentsScratch scratch;
};

constexpr int64_t kWidth = 12;

TEST_CASE("mean and covariance are those of the definition") {
  for (int64_t count : {1, 2, 255, 256, 257, 512, 1000}) {
    CAPTURE(count);
    const std::vector<float> rows = test::sample_rows(count, kWidth, 3.0f, 1);
    Observer observer(kWidth);
    observer.add(rows);
    CHECK(observer.moments.count() == count);
    if (count == 1) {
      for (int64_t i = 0; i < kWidth; ++i) {
        for (int64_t j = 0; j <= i; ++j)
          CHECK(observer.covariance().matrix[static_cast<size_t>(i * kWidth + j)] == 0.0);
      }
      continue;
    }
    CHECK(difference(observer.covariance(), direct(rows, kWidth, true), kWidth) < 1e-13);
    CHECK(mean_difference(observer.covariance(), direct(rows, kWidth, true)) < 1e-14);
  }
}

TEST_CASE("the second moment about zero") {
  const std::vector<float> rows = test::sample_rows(700, kWidth, 3.0f, 2);
  Observer observer(kWidth);
  observer.add(rows);
  const Covariance got = observer.covariance(false);
  CHECK(difference(got, direct(rows, kWidth, false), kWidth) < 1e-13);
  CHECK(got.mean == std::vector<double>(kWidth, 0.0));
}

TEST_CASE("a mean of 900 deviations, as keys of Qwen2 have, costs no precision worth a word") {
  // Deviations are 1 to 5. The bound of moments.h is 2e-8 for a deviation of 1.
  const std::vector<float> rows = test::sample_rows(5000, kWidth, 900.0f, 3);
  Observer observer(kWidth);
  observer.add(rows);
  CHECK(difference(observer.covariance(), direct(rows, kWidth, true), kWidth) < 1e-8);
  CHECK(mean_difference(observer.covariance(), direct(rows, kWidth, true)) < 1e-14);

  Observer merged(kWidth);
  Observer rest(kWidth);
  merged.add(rows, 0, 1234);
  rest.add(rows, 1234, 5000 - 1234);
  merged.merge(rest);
  CHECK(difference(merged.covariance(), direct(rows, kWidth, true), kWidth) < 1e-8);
}

TEST_CASE("means that wander from block to block are joined exactly") {
  std::vector<float> rows = test::sample_rows(1024, kWidth, 0.0f, 4);
  for (size_t index = 0; index < rows.size(); ++index) rows[index] += static_cast<float>(index / kWidth / 256) * 500.0f;
  Observer observer(kWidth);
  observer.add(rows);
  CHECK(difference(observer.covariance(), direct(rows, kWidth, true), kWidth) < 1e-12);
}

TEST_CASE("how rows are cut into calls changes no bit") {
  const std::vector<float> rows = test::sample_rows(1111, kWidth, 30.0f, 5);
  Observer whole(kWidth);
  whole.add(rows);
  const Covariance expected = whole.covariance();
  for (int64_t piece : {1, 7, 255, 256, 257, 600}) {
    CAPTURE(piece);
    Observer cut(kWidth);
    for (int64_t first = 0; first < 1111; first += piece) cut.add(rows, first, std::min<int64_t>(piece, 1111 - first));
    CHECK(cut.covariance().matrix == expected.matrix);
    CHECK(cut.covariance().mean == expected.mean);
  }
}

TEST_CASE("asking in between changes nothing") {
  const std::vector<float> rows = test::sample_rows(700, kWidth, 1.0f, 6);
  Observer observer(kWidth);
  observer.add(rows, 0, 300);
  const Covariance before = observer.covariance();
  CHECK(difference(before, direct({rows.begin(), rows.begin() + 300 * kWidth}, kWidth, true), kWidth) < 1e-13);
  observer.add(rows, 300, 400);
  Observer whole(kWidth);
  whole.add(rows);
  CHECK(observer.covariance().matrix == whole.covariance().matrix);
}

TEST_CASE("merged moments are those of all rows") {
  const std::vector<float> rows = test::sample_rows(2000, kWidth, 5.0f, 7);
  const Covariance expected = direct(rows, kWidth, true);
  for (int64_t split : {0, 1, 100, 256, 1000, 1999, 2000}) {
    CAPTURE(split);
    Observer first(kWidth);
    Observer second(kWidth);
    first.add(rows, 0, split);
    second.add(rows, split, 2000 - split);
    first.merge(second);
    CHECK(first.moments.count() == 2000);
    CHECK(difference(first.covariance(), expected, kWidth) < 1e-12);
    CHECK(mean_difference(first.covariance(), expected) < 1e-14);
    CHECK(second.moments.count() == 2000 - split);
  }
}

TEST_CASE("a failure of the backend is reported") {
  const std::vector<float> rows = test::sample_rows(300, kWidth, 1.0f, 8);
  Observer observer(kWidth);
  observer.backend.fail_after(0);
  CHECK(observer.moments.observe(observer.backend, rows.data(), 100, observer.scratch).ok());
  CHECK(native_code_of(observer.moments.covariance(observer.backend, true).status()) == 17);
  CHECK(native_code_of(observer.moments.observe(observer.backend, rows.data(), 300, observer.scratch)) == 17);
}

}  // namespace
}  // namespace foldkv
