#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/base/status.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/number_io.h"

// Operations on host tensors and the exact region, on examples that can be checked by hand.
namespace foldkv::backend {
namespace {

using test::ExactPages;
using test::TensorMemory;

const float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("a product reads strided weights of any format and adds a bias") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const std::vector<float> x = {1, 2, 3, -1, 0, 2};  // 2 x 3
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
    const TensorMemory weight(format, 2, 3, 5, test::kPoison, std::vector<float>{1, 0, 2, 0.5f, -1, 4});
    const TensorMemory bias(format, 1, 2, 2, test::kPoison, std::vector<float>{10, 20});
    const auto product = backend->make_product({2, 3, 2, format, false}).value();
    const test::MemoryBlock workspace(product->workspace_bytes(), test::kPoison);
    std::vector<float> y(4, kNan);
    REQUIRE(product->run({x.data(), weight.view(), bias.view(), y.data(), workspace.data()}).ok());
    CHECK(y == std::vector<float>{17, 30.5f, 13, 27.5f});
    REQUIRE(product->run({x.data(), weight.view(), {}, y.data(), workspace.data()}).ok());
    CHECK(y == std::vector<float>{7, 10.5f, 3, 7.5f});
  }
}

TEST_CASE("finite is every number of the view and none beside it") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
    for (const float last : {3.0f, kInfinity, -kInfinity, kNan}) {
      const TensorMemory tensor(format, 2, 2, 3, test::kPoison, std::vector<float>{1, -2, 0, last});
      CHECK(backend->all_finite(tensor.view()).value() == std::isfinite(last));
    }
  }
}

TEST_CASE("conversion rounds half to even and refuses what does not fit") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const auto convert = [&](float number, NumberFormat to) {
    const TensorMemory input(NumberFormat::kF32, 1, 1, 1, test::kZero, std::vector<float>{number});
    const TensorMemory output(to, 1, 1, 1, test::kPoison);
    const Status status = backend->convert(input.view(), output.view());
    return std::pair(status.code(), output.at(0, 0));
  };
  CHECK(convert(2049.0f, NumberFormat::kF16).second == 2048.0f);
  CHECK(convert(2051.0f, NumberFormat::kF16).second == 2052.0f);
  CHECK(convert(257.0f, NumberFormat::kBF16).second == 256.0f);
  CHECK(convert(0x1p-25f, NumberFormat::kF16).second == 0.0f);
  CHECK(convert(0x1.8p-24f, NumberFormat::kF16).second == 0x1p-23f);
  CHECK(convert(65519.0f, NumberFormat::kF16) == std::pair(absl::StatusCode::kOk, 65504.0f));
  CHECK(convert(65520.0f, NumberFormat::kF16).first == absl::StatusCode::kUnknown);
  CHECK(convert(std::numeric_limits<float>::max(), NumberFormat::kBF16).first == absl::StatusCode::kUnknown);
  CHECK(convert(kNan, NumberFormat::kF32).first == absl::StatusCode::kUnknown);
}

TEST_CASE("heads are normed, then turned; the rest of a head passes through") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const double quarter_turn = 2.0 * std::atan(1.0);
  const TensorMemory input(NumberFormat::kF16, 2, 4, 6, test::kPoison, std::vector<float>{3, 4, 0, 2, 1, 1, 8, 6});
  const std::vector<float> norm = {2, 1};
  const std::vector<int32_t> positions = {1, 0};
  PrepareHeadsRequest request{input.view(), 2, 2, nullptr, 0.0, {}, nullptr, nullptr};
  std::vector<float> output(8, kNan);
  request.output = output.data();
  REQUIRE(backend->prepare_heads(request).ok());
  CHECK(output == std::vector<float>{3, 4, 0, 2, 1, 1, 8, 6});
  request.norm = norm.data();
  request.rotation = {Pairing::kInterleaved, 1, 10.0, &quarter_turn, nullptr};
  request.positions = positions.data();
  REQUIRE(backend->prepare_heads(request).ok());
  const double a = 10.0 / std::sqrt(12.5);
  const double b = 10.0 / std::sqrt(50.0);
  const std::vector<double> expected = {-4 * a, 6 * a, -std::sqrt(2.0) * 10, 0, 20, 10, 16 * b, 6 * b};
  for (size_t i = 0; i < 8; ++i) CHECK(static_cast<double>(output[i]) == doctest::Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("appended rows land in their slots, keys normed; nothing else changes") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const ExactLayout layout{2, 4, NumberFormat::kF16};
  const ExactPages pages(layout, 6, test::kPoison);
  const TensorMemory keys(NumberFormat::kF32, 2, 4, 5, test::kPoison, std::vector<float>{3, 4, 0, 5, 1, 7, 5, 5});
  const TensorMemory values(NumberFormat::kBF16, 2, 4, 4, test::kPoison, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<float> norm = {5, 10};
  REQUIRE(backend->append({keys.view(), values.view(), 2, norm.data(), 0.0, layout, pages.region(), 3}).ok());
  const double root = std::sqrt(2.0);  // of mean squares: 5, 5, 5 * sqrt(2) / sqrt(2), 5
  const std::vector<double> expected = {3 * root, 8 * root, 0, 10 * root, 1, 14, 5, 10};
  const std::vector<double> stored = pages.numbers(Side::kKeys, 3, 2);
  for (size_t i = 0; i < 8; ++i) CHECK(stored[i] == doctest::Approx(expected[i]).epsilon(1e-3));
  CHECK(pages.numbers(Side::kValues, 3, 2) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  for (const int64_t slot : {0, 1, 2, 5}) {
    for (const Side side : {Side::kKeys, Side::kValues}) {
      for (const double number : pages.numbers(side, slot, 1)) CHECK(std::isnan(number));
    }
  }
}

TEST_CASE("append names the side of a number that its format does not hold") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const auto append = [&](float key, float value, NumberFormat format) {
    const ExactLayout layout{4, 1, format};
    const ExactPages pages(layout, 1, test::kZero);
    const TensorMemory keys(NumberFormat::kF32, 1, 1, 1, test::kZero, std::vector<float>{key});
    const TensorMemory values(NumberFormat::kF32, 1, 1, 1, test::kZero, std::vector<float>{value});
    const Status status = backend->append({keys.view(), values.view(), 1, nullptr, 0.0, layout, pages.region(), 0});
    return std::pair(status.code(), argument_of(status));
  };
  const auto wrong = [](const char* argument) { return std::pair(absl::StatusCode::kUnknown, std::string(argument)); };
  CHECK(append(65504.0f, -65504.0f, NumberFormat::kF16).first == absl::StatusCode::kOk);
  CHECK(append(65520.0f, 0.0f, NumberFormat::kF16) == wrong("key"));
  CHECK(append(0.0f, -1e6f, NumberFormat::kF16) == wrong("value"));
  CHECK(append(1e6f, 1e30f, NumberFormat::kBF16).first == absl::StatusCode::kOk);
  CHECK(append(kNan, 0.0f, NumberFormat::kF32) == wrong("key"));
  CHECK(append(0.0f, kInfinity, NumberFormat::kF32) == wrong("value"));
}

TEST_CASE("rows move down over a page's edge and over themselves") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const ExactLayout layout{3, 2, NumberFormat::kF32};
  const ExactPages pages(layout, 10, test::kPoison);
  for (int64_t slot = 0; slot < 10; ++slot) {
    const float numbers[2] = {static_cast<float>(slot), static_cast<float>(-slot)};
    pages.put(Side::kKeys, slot, numbers);
    pages.put(Side::kValues, slot, numbers);
  }
  REQUIRE(backend->move_rows({layout, pages.region(), 4, 2, 5}).ok());
  const std::vector<double> expected = {0, 1, 4, 5, 6, 7, 8, 7, 8, 9};
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const std::vector<double> stored = pages.numbers(side, 0, 10);
    for (size_t slot = 0; slot < 10; ++slot) {
      CHECK(stored[2 * slot] == expected[slot]);
      CHECK(stored[2 * slot + 1] == -expected[slot]);
    }
  }
}

}  // namespace
}  // namespace foldkv::backend
