#include "tests/backends/conformance/score_problem.h"

#include <algorithm>
#include <cmath>

#include "tests/backends/conformance/fields.h"
#include "tests/support/backends.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::test {
namespace {

constexpr const char* kHeadNames[] = {"query heads", "group mean", "group maximum", "all heads"};
constexpr const char* kResultNames[] = {"sums", "squares", "maxima", "below", "entropies"};
constexpr int64_t kGap = 3;  // numbers between lists, which nobody may write

std::vector<float> log_sum_exp_of(const AttendProblem& problem, const AttendPart& part) {
  const auto reference = open_backend(reference_choice(), 1);
  const Outcome outcome = problem.run(*reference, {&part, 1});
  const std::vector<double>& numbers = outcome.fields.at(1).numbers;
  return {numbers.begin(), numbers.end()};
}

}  // namespace

// [lists][tokens and a gap]; zeros at first.
struct ScoreProblem::Results {
  int64_t lists = 0;
  int64_t tokens = 0;
  std::vector<TensorMemory> numbers;

  Results(int64_t list_count, int64_t token_count, std::byte fill) : lists(list_count), tokens(token_count) {
    const std::vector<float> zeros(static_cast<size_t>(lists * tokens), 0.0f);
    for (size_t i = 0; i < std::size(kResultNames); ++i) {
      numbers.emplace_back(NumberFormat::kF32, lists, tokens, tokens + kGap, fill, zeros);
    }
  }
  [[nodiscard]] bool gaps_untouched(size_t i, std::byte fill) const {
    const MutableTensorView& view = numbers[i].view();
    for (int64_t list = 0; list + 1 < lists; ++list) {
      const std::byte* const end = view.row(list + 1);
      if (!std::all_of(end - kGap * int64_t{sizeof(float)}, end, [=](std::byte b) { return b == fill; })) return false;
    }
    return numbers[i].canary_alive();
  }
  [[nodiscard]] float* data(size_t i) const { return reinterpret_cast<float*>(numbers[i].view().data); }
};

std::string describe(const ScoreCase& score_case) {
  return absl::StrCat(kHeadNames[static_cast<size_t>(score_case.heads)], score_case.weighted ? ", weighted" : "",
                      score_case.all_results ? "" : ", sums alone", ", sequence ", score_case.sequence, " of ",
                      describe(score_case.attend));
}

ScoreProblem::ScoreProblem(const ScoreCase& score_case, std::byte fill, ReferenceLogSumExp& log_sum_exp)
    : case_(score_case), fill_(fill), problem_(score_case.attend, fill) {
  std::call_once(log_sum_exp.found,
                 [&] { log_sum_exp.numbers = log_sum_exp_of(problem_, {case_.sequence, 0, shape().rows}); });
  log_sum_exp_ = log_sum_exp.numbers;
  Random random(51);
  const auto tokens = static_cast<double>(shape().latents + shape().exact + 1);
  for (int64_t row = 0; row < shape().rows; ++row) {
    row_weights_.push_back(static_cast<float>(random.uniform(0.1, 2.0)));
    thresholds_.push_back(static_cast<float>(random.uniform(0.1, 2.0) / tokens));
  }
  // A row that sees nothing, whatever its keys are.
  if (shape().rows > 2) {
    std::fill_n(log_sum_exp_.begin() + case_.attend.query_heads(), case_.attend.query_heads(),
                -std::numeric_limits<float>::infinity());
  }
}

Status ScoreProblem::run_piece(backend::Backend& backend, const AttendPart& part, const Results& results) const {
  const PreparedRotation rotation(backend, problem_.rotation());
  const AttendProblem::Call call = problem_.make_call({&part, 1});
  const MemoryBlock workspace(backend.score_workspace(call.shape), fill_);
  const size_t first = static_cast<size_t>(part.first_row);
  backend::ScoreRequest request;
  request.rules = problem_.rules(rotation.get());
  request.exact_layout = problem_.exact_layout();
  request.latent = problem_.latent_layer();
  request.sequence = call.sequences.front();
  request.queries = call.queries.data();
  request.log_sum_exp = log_sum_exp_.data() + part.first_row * case_.attend.query_heads();
  request.row_weights = case_.weighted ? row_weights_.data() + first : nullptr;
  request.thresholds = case_.all_results ? thresholds_.data() + first : nullptr;
  request.heads = case_.heads;
  request.sums = results.data(0);
  if (case_.all_results) {
    request.squares = results.data(1);
    request.maxima = results.data(2);
    request.below = results.data(3);
    request.entropies = results.data(4);
  }
  request.list_stride = results.tokens + kGap;
  request.workspace = workspace.data();
  Status status = backend.score(request);
  if (status.ok() && !workspace.canary_alive()) status = state_error("written beyond the workspace");
  return status;
}

// Weights are off by what logits are off; sums add up, so do their errors.
void ScoreProblem::add_fields(const Results& results, Outcome& outcome) const {
  const double weight = 2.0 * problem_.tolerance().of_row;
  const auto rows = static_cast<double>(shape().rows);
  for (size_t i = 0; i < std::size(kResultNames); ++i) {
    outcome.expect(results.gaps_untouched(i, fill_), "written beyond the results or between the lists");
    // An entropy near 0 is the difference of a weight from 1.
    const Tolerance tolerance{2.0 * weight, 0.0, i == 4 ? 2.0 * weight * rows : 1e-30};
    Field field = numbers_field(kResultNames[i], results.numbers[i].numbers(), results.tokens, tolerance);
    if (i == 3) {
      field.kind = FieldKind::kSteps;
      field.share_of_steps = 0.01;
    }
    outcome.fields.push_back(std::move(field));
  }
}

Outcome ScoreProblem::run(backend::Backend& backend, int64_t rows_of_piece) const {
  const int64_t heads = case_.attend.view_heads == 0 ? case_.attend.kv_heads : case_.attend.view_heads;
  int64_t lists = heads;
  if (case_.heads == backend::ScoreHeads::kQueryHeads) lists *= case_.attend.ratio;
  if (case_.heads == backend::ScoreHeads::kAllHeads) lists = 1;
  const Results results(lists, std::max<int64_t>(1, shape().latents + shape().exact), fill_);
  Outcome outcome;
  for (int64_t first = 0; first < shape().rows; first += rows_of_piece) {
    const AttendPart part = {case_.sequence, first, std::min(rows_of_piece, shape().rows - first)};
    outcome.set_status(run_piece(backend, part, results));
    if (outcome.code != absl::StatusCode::kOk) return outcome;
  }
  add_fields(results, outcome);
  return outcome;
}

}  // namespace foldkv::test
