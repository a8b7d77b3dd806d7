#include <algorithm>

#include "tests/backends/conformance/score_problem.h"

namespace foldkv::test {
namespace {

using backend::ScoreHeads;

constexpr ScoreHeads kHeads[] = {ScoreHeads::kQueryHeads, ScoreHeads::kGroupMean, ScoreHeads::kGroupMaximum,
                                 ScoreHeads::kAllHeads};

// Over exact tokens, latents and both.
void add_head_sizes(std::vector<ScoreCase>& cases) {
  int64_t turn = 0;
  for (const int64_t head_size : {8, 20, 64, 80, 128, 256}) {
    for (const AttendSequenceCase& sequence :
         {AttendSequenceCase{0, 67, 5}, AttendSequenceCase{67, 0, 1}, AttendSequenceCase{70, 71, 37}}) {
      ScoreCase score_case;
      score_case.heads = kHeads[(turn + turn / 4) % 4];
      score_case.weighted = turn % 2 == 0;
      AttendCase& attend = score_case.attend;
      attend.name = "head sizes";
      attend.head_size = head_size;
      attend.kv_heads = 1 + turn % 3;
      attend.ratio = 1 + turn % (head_size == 256 ? 4 : 8);
      attend.pairing = turn % 4 < 2 ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved;
      attend.sequences = {sequence};
      cases.push_back(score_case);
      ++turn;
    }
  }
}

// Field report 52: every size of a page or a tile, one less and one more.
void add_token_counts(std::vector<ScoreCase>& cases) {
  for (const int64_t tokens : {0, 1, 2, 31, 63, 64, 65, 129, 255, 256, 257}) {
    ScoreCase score_case;
    score_case.attend.name = absl::StrCat(tokens, " tokens");
    score_case.attend.ratio = 3;
    score_case.heads = kHeads[tokens % 4];
    score_case.attend.sequences = {{0, tokens, std::max<int64_t>(1, std::min<int64_t>(tokens, 50))}};
    cases.push_back(score_case);
    score_case.heads = ScoreHeads::kGroupMean;
    score_case.attend.sequences = {{tokens, 3, 3}};
    score_case.all_results = false;
    cases.push_back(score_case);
  }
}

void add_rules(std::vector<ScoreCase>& cases) {
  for (const ScoreHeads heads : kHeads) {
    ScoreCase score_case;
    score_case.heads = heads;
    AttendCase& attend = score_case.attend;
    constexpr int64_t kWindows[] = {1, 8, 100, 150};  // one for each way to take heads together
    attend = {"window"};
    attend.window = kWindows[static_cast<size_t>(heads)];
    attend.jumps = attend.window == 100;
    attend.sequences = {{90, 130, 70}};
    cases.push_back(score_case);
    attend = {"soft cap"};
    attend.soft_cap = 50.0;
    attend.query_size = 30.0;
    attend.sequences = {{60, 40, 9}};
    cases.push_back(score_case);
    attend = {"large logits"};
    attend.query_size = 100.0;
    attend.sequences = {{60, 40, 9}};
    cases.push_back(score_case);
    attend = {"no rotation, bf16, odd pages, no means, one layer"};
    attend.frequencies = 0;
    attend.format = NumberFormat::kBF16;
    attend.exact_page_tokens = 7;
    attend.latent_page_tokens = 9;
    attend.means = false;
    attend.layers = 1;
    attend.correction_rank = 0;
    attend.sequences = {{70, 33, 4}};
    cases.push_back(score_case);
    attend = {"a trellis, partial rotation"};
    attend.bits = 2;
    attend.step = 1;
    attend.frequencies = 5;
    attend.rotation_scale = 1.2;
    attend.correction_rank = 6;
    attend.sequences = {{70, 33, 4}};
    cases.push_back(score_case);
  }
}

void add_views(std::vector<ScoreCase>& cases) {
  size_t turn = 0;
  for (const AttendCase& attend : attend_view_cases()) {
    ScoreCase score_case;
    score_case.attend = attend;
    score_case.heads = kHeads[turn++ % 4];
    score_case.sequence = std::min<size_t>(1, attend.sequences.size() - 1);
    cases.push_back(score_case);
  }
}

Row row_of(const ScoreCase& score_case) {
  const auto log_sum_exp = std::make_shared<ReferenceLogSumExp>();
  return {describe(score_case), [score_case, log_sum_exp](backend::Backend& backend, std::byte fill) {
            return ScoreProblem(score_case, fill, *log_sum_exp).run(backend, 1'000'000);
          }};
}

Row random_row(Random& random) {
  ScoreCase score_case;
  score_case.heads = kHeads[random.between(0, 3)];
  score_case.weighted = random.chance(0.5);
  score_case.all_results = random.chance(0.8);
  AttendCase& attend = score_case.attend;
  attend.name = "random";
  attend.kv_heads = random.between(1, 4);
  attend.ratio = random.between(1, 8);
  attend.head_size = random.between(1, 100);
  attend.exact_page_tokens = random.between(1, 40);
  attend.latent_page_tokens = random.between(1, 70);
  attend.layers = random.between(1, 3);
  attend.correction_rank = std::min(random.between(0, 5), attend.layers * attend.key_width());
  attend.means = random.chance(0.7);
  attend.window = random.chance(0.3) ? random.between(1, 90) : 0;
  attend.soft_cap = random.chance(0.3) ? random.uniform(1.0, 60.0) : 0.0;
  attend.pairing = random.chance(0.5) ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved;
  attend.frequencies = random.between(0, attend.head_size / 2);
  attend.jumps = random.chance(0.3);
  attend.grouped = random.chance(0.8);
  attend.first_position = random.chance(0.3) ? random.between(0, 2000000000) : 0;
  if (random.chance(0.4)) attend.view_heads = 1;
  const int64_t rows = random.between(1, 40);
  for (int64_t view = 0; view < attend.views(); ++view) {
    const bool latents = attend.grouped && attend.view_heads == 0;
    attend.sequences.push_back({latents ? random.between(0, 200) : 0, random.between(0, 200), rows});
  }
  score_case.sequence = attend.sequences.size() - 1;
  return row_of(score_case);
}

}  // namespace

std::vector<ScoreCase> score_cases() {
  std::vector<ScoreCase> cases;
  add_head_sizes(cases);
  add_token_counts(cases);
  add_rules(cases);
  add_views(cases);
  return cases;
}

OperationRows score_rows() {
  OperationRows table{Operation::kScore, {}, random_row};
  for (const ScoreCase& score_case : score_cases()) table.rows.push_back(row_of(score_case));
  return table;
}

}  // namespace foldkv::test
