#include "backends/reference/rotation.h"

#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv::backend::reference {
namespace {

TEST_CASE("a quarter turn swaps the two numbers of a pair") {
  const double frequency = 2.0 * std::atan(1.0);
  Rotation rotation{Pairing::kHalfSplit, 1, 3.0, &frequency, nullptr};
  std::vector<double> token = {1.0, 2.0, 5.0};
  rotate_heads(rotation, 1, 1, 3, token.data());
  CHECK(token[0] == doctest::Approx(-6.0));
  CHECK(token[1] == doctest::Approx(3.0));
  CHECK(token[2] == 5.0);  // beyond the rotated part: neither turned nor scaled
}

TEST_CASE("pairings differ by a permutation of the head only") {
  const std::vector<double> frequencies = {1.0, 0.25, 0.01};
  const Rotation half{Pairing::kHalfSplit, 3, 1.5, frequencies.data(), nullptr};
  const Rotation interleaved{Pairing::kInterleaved, 3, 1.5, frequencies.data(), nullptr};
  test::Random random(1);
  const auto original = random.normals<double>(2 * 8);  // two heads of 8, of which 6 turn
  std::vector<double> a = original;
  std::vector<double> b(original.size());
  const auto moved = [](int64_t head, int64_t i) {
    return static_cast<size_t>(head * 8 + (i < 3 ? 2 * i : 2 * (i - 3) + 1));
  };
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < 6; ++i) b[moved(head, i)] = original[static_cast<size_t>(head * 8 + i)];
  }
  rotate_heads(half, 131071, 2, 8, a.data());
  rotate_heads(interleaved, 131071, 2, 8, b.data());
  CHECK(a != original);
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < 6; ++i) CHECK(a[static_cast<size_t>(head * 8 + i)] == b[moved(head, i)]);
  }
}

TEST_CASE("scores depend on the distance of two positions only") {
  const std::vector<double> frequencies = {1.0, 0.1, 0.01, 0.001};
  const Rotation rotation{Pairing::kInterleaved, 4, 1.0, frequencies.data(), nullptr};
  test::Random random(2);
  const auto q = random.normals<double>(8);
  const auto k = random.normals<double>(8);
  const auto score = [&](int64_t q_position, int64_t k_position) {
    std::vector<double> a = q;
    std::vector<double> b = k;
    rotate_heads(rotation, q_position, 1, 8, a.data());
    rotate_heads(rotation, k_position, 1, 8, b.data());
    double sum = 0.0;
    for (size_t i = 0; i < 8; ++i) sum += a[i] * b[i];
    return sum;
  };
  CHECK(score(40, 3) == doctest::Approx(score(100037, 100000)).epsilon(1e-9));
  CHECK(score(40, 3) != doctest::Approx(score(41, 3)).epsilon(1e-3));
}

}  // namespace
}  // namespace foldkv::backend::reference
