#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// One score for each head and token of a layer; higher is kept first.
struct ScoreTable {
  ScoreTable() = default;
  ScoreTable(int64_t head_count, int64_t token_count)
      : heads(head_count), tokens(token_count), scores(static_cast<size_t>(head_count * token_count)) {}

  [[nodiscard]] std::span<double> head(int64_t index) {
    return std::span(scores).subspan(static_cast<size_t>(index * tokens), static_cast<size_t>(tokens));
  }
  [[nodiscard]] std::span<const double> head(int64_t index) const {
    return std::span(scores).subspan(static_cast<size_t>(index * tokens), static_cast<size_t>(tokens));
  }

  bool operator==(const ScoreTable&) const = default;

  int64_t heads = 0;
  int64_t tokens = 0;
  std::vector<double> scores;  // [heads][tokens]
};

// Argument error that names `argument` unless there are heads * tokens scores.
[[nodiscard]] Status check_score_table(absl::string_view argument, const ScoreTable& table);

}  // namespace foldkv
