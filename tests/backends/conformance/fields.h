#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/backends/conformance/outcome.h"
#include "tests/support/latent_pages.h"
#include "tests/support/number_io.h"

// What most rows share: fields of an outcome, and the lists that cases run over.
namespace foldkv::test {

[[nodiscard]] inline const std::vector<NumberFormat>& all_formats() {
  static const std::vector<NumberFormat> formats = {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16};
  return formats;
}

// One unit in the last place, at most.
[[nodiscard]] inline double step_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32: return 0x1p-23;
    case NumberFormat::kF16: return 0x1p-10;
    case NumberFormat::kBF16: return 0x1p-7;
  }
  return 0.0;
}

[[nodiscard]] inline Field numbers_field(std::string name, std::vector<double> numbers, int64_t row_width,
                                         const Tolerance& tolerance) {
  return {std::move(name), FieldKind::kNumbers, std::move(numbers), row_width, tolerance};
}

[[nodiscard]] inline Field equal_field(std::string name, std::vector<double> numbers, int64_t row_width = 1) {
  return {std::move(name), FieldKind::kEqual, std::move(numbers), row_width, {}};
}

template <typename Number>
[[nodiscard]] std::vector<double> wide(const std::vector<Number>& numbers) {
  return {numbers.begin(), numbers.end()};
}

[[nodiscard]] inline std::vector<double> wide_halves(const uint16_t* numbers, int64_t count) {
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<double>(f32_from_f16(numbers[i])));
  return result;
}

}  // namespace foldkv::test
