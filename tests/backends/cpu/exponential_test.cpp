#include <cmath>
#include <limits>
#include <vector>

#include "tests/backends/cpu/instruction_sets.h"

namespace foldkv::backend::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double relative_error(float actual, double expected) {
  return std::abs((static_cast<double>(actual) - expected) / expected);
}

std::vector<float> steps(float first, float last, int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i <= count; ++i) {
    numbers.push_back(first + (last - first) * static_cast<float>(i) / static_cast<float>(count));
  }
  return numbers;
}

TEST_CASE("exponential: relative error below 2e-7") {
  const std::vector<float> x = steps(-87.0f, 88.0f, 1'000'003);
  test::for_each_kernel_set([&](const Kernels& kernels) {
    std::vector<float> y(x.size());
    kernels.exponential(x.data(), static_cast<int64_t>(x.size()), y.data());
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, relative_error(y[i], std::exp(static_cast<double>(x[i]))));
    }
    CHECK(worst < 2e-7);
  });
}

TEST_CASE("exponential: the numbers that a softmax relies on are exact") {
  test::for_each_kernel_set([](const Kernels& kernels) {
    const std::vector<float> x = {0.0f, -0.0f, -kInfinity, -1e30f, -88.0f, kInfinity, 89.0f,
                                  std::numeric_limits<float>::quiet_NaN()};
    std::vector<float> y(x.size());
    kernels.exponential(x.data(), static_cast<int64_t>(x.size()), y.data());
    CHECK(y[0] == 1.0f);
    CHECK(y[1] == 1.0f);
    CHECK(y[2] == 0.0f);
    CHECK(y[3] == 0.0f);
    CHECK(y[4] == 0.0f);
    CHECK(y[5] == kInfinity);
    CHECK(y[6] == kInfinity);
    CHECK(std::isnan(y[7]));
  });
}

TEST_CASE("hyperbolic tangent: relative error below 3e-7") {
  std::vector<float> x = steps(-12.0f, 12.0f, 1'000'003);
  for (float tiny = 1e-6f; tiny > 1e-30f; tiny *= 0.7f) x.push_back(tiny);
  test::for_each_kernel_set([&](const Kernels& kernels) {
    std::vector<float> y(x.size());
    kernels.hyperbolic_tangent(x.data(), static_cast<int64_t>(x.size()), y.data());
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0.0f) continue;
      worst = std::max(worst, relative_error(y[i], std::tanh(static_cast<double>(x[i]))));
    }
    CHECK(worst < 3e-7);
    const float ends[] = {0.0f, -kInfinity, kInfinity};
    float at_ends[3];
    kernels.hyperbolic_tangent(ends, 3, at_ends);
    CHECK(at_ends[0] == 0.0f);
    CHECK(at_ends[1] == -1.0f);
    CHECK(at_ends[2] == 1.0f);
  });
}

}  // namespace
}  // namespace foldkv::backend::cpu
