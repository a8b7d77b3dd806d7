#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tests/backends/conformance/attend_problem.h"

namespace foldkv::test {

struct ScoreCase {
  AttendCase attend;    // of one sequence, or of the views of one
  size_t sequence = 0;  // the one that is scored
  backend::ScoreHeads heads = backend::ScoreHeads::kQueryHeads;
  bool weighted = false;
  bool all_results = true;  // else sums alone
};

[[nodiscard]] std::string describe(const ScoreCase& score_case);

// Found once for a case and then shared by its problems, also by those of other threads.
struct ReferenceLogSumExp {
  std::once_flag found;
  std::vector<float> numbers;  // [rows][query_heads]
};

// A case with log-sum-exps that are the same for every backend: the reference's.
class ScoreProblem {
 public:
  ScoreProblem(const ScoreCase& score_case, std::byte fill, ReferenceLogSumExp& log_sum_exp);

  // Rows piece by piece, each piece a call. Fields "sums", "squares", "maxima", "below", "entropies".
  [[nodiscard]] Outcome run(backend::Backend& backend, int64_t rows_of_piece) const;

 private:
  struct Results;

  [[nodiscard]] Status run_piece(backend::Backend& backend, const AttendPart& part, const Results& results) const;
  void add_fields(const Results& results, Outcome& outcome) const;
  [[nodiscard]] const AttendSequenceCase& shape() const { return case_.attend.sequences[case_.sequence]; }

  ScoreCase case_;
  std::byte fill_;
  AttendProblem problem_;
  std::vector<float> log_sum_exp_;  // [rows][query_heads]
  std::vector<float> row_weights_, thresholds_;  // [rows]
};

// The cases of the table.
[[nodiscard]] std::vector<ScoreCase> score_cases();

}  // namespace foldkv::test
