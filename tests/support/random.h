#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace foldkv::test {

// Numbers from a seed, the same on every platform (the standard's distributions are not).
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  // Whether both give the same numbers from here on.
  [[nodiscard]] bool operator==(const Random&) const = default;

  // In [0, 1).
  [[nodiscard]] double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  [[nodiscard]] double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [low, high], both included.
  [[nodiscard]] int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator_() % static_cast<uint64_t>(high - low + 1));
  }
  [[nodiscard]] bool chance(double probability) { return uniform() < probability; }
  template <typename Value>
  [[nodiscard]] const Value& pick(const std::vector<Value>& values) {
    return values[static_cast<size_t>(between(0, static_cast<int64_t>(values.size()) - 1))];
  }
  // Mean 0, variance 1.
  [[nodiscard]] double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  template <typename Number = float>
  [[nodiscard]] std::vector<Number> normals(int64_t count, double deviation = 1.0) {
    std::vector<Number> numbers(static_cast<size_t>(count));
    for (Number& number : numbers) number = static_cast<Number>(deviation * normal());
    return numbers;
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace foldkv::test
