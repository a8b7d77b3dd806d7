#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace foldkv {

// A matrix [rows][from] becomes [rows][to], its first columns. Empty ones stay empty.
template <typename Number>
void cut_columns(std::vector<Number>& matrix, int64_t from, int64_t to) {
  if (matrix.empty() || from == to) return;
  const auto rows = static_cast<int64_t>(matrix.size()) / from;
  std::vector<Number> cut;
  cut.reserve(static_cast<size_t>(rows * to));
  for (int64_t row = 0; row < rows; ++row) {
    cut.insert(cut.end(), matrix.begin() + row * from, matrix.begin() + row * from + to);
  }
  matrix = std::move(cut);
}

}  // namespace foldkv
