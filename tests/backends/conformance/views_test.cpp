#include <algorithm>
#include <cmath>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/conformance/score_problem.h"
#include "tests/backends/conformance/subjects.h"
#include "tests/support/exact_pages.h"
#include "tests/support/prepared_rotation.h"

// Views of some heads against views of all heads with the same tokens; scores of rows in pieces and at once.
namespace foldkv::test {
namespace {

using backend::ScoreHeads;
using backend::Side;

struct Shape {
  int64_t kv_heads = 4;
  int64_t group = 2;
  int64_t head_size = 24;
  int64_t tokens = 700;
  int64_t rows = 1;
  int64_t window = 0;

  [[nodiscard]] int64_t query_heads() const { return kv_heads * group; }
};

std::vector<int32_t> positions_of(int64_t first, int64_t count) {
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(first + i));
  return positions;
}

// The same tokens as one view of all heads and as views of some.
class Tokens {
 public:
  explicit Tokens(const Shape& shape)
      : shape_(shape),
        random_(61),
        positions_(positions_of(0, shape.tokens), 32, kPoison),
        query_positions_(positions_of(shape.tokens - shape.rows, shape.rows)),
        queries_(random_.normals<float>(shape.rows * shape.query_heads() * shape.head_size)) {
    for (int64_t pair = 0; pair < shape.head_size / 2; ++pair) {
      frequencies_.push_back(std::pow(100.0, -static_cast<double>(pair) / static_cast<double>(shape.head_size)));
    }
    const int64_t width = shape.kv_heads * shape.head_size;
    for (auto& numbers : numbers_) numbers = random_.normals<float>(shape.tokens * width);
  }

  struct Result {
    std::vector<float> context, log_sum_exp, scores;
    bool operator==(const Result&) const = default;
  };

  // heads: of a view.
  [[nodiscard]] Result run(backend::Backend& backend, int64_t heads, ScoreHeads score_heads) const {
    const PreparedRotation rotation(backend, {backend::Pairing::kHalfSplit, shape_.head_size / 2, 1.0,
                                              frequencies_.data(), nullptr});
    std::vector<ExactPages> pages;
    for (int64_t first = 0; first < shape_.kv_heads; first += heads) pages.push_back(pages_of(first, heads));
    std::vector<backend::AttendSequence> views;
    for (const ExactPages& page : pages) {
      views.push_back({page.region(), positions_.region(), {}, {}, 0, shape_.rows, query_positions_.data(),
                       std::ssize(views) * heads, heads == shape_.kv_heads ? 0 : heads});
    }
    backend::AttendRequest request;
    request.rules = {shape_.query_heads(), shape_.kv_heads, shape_.head_size, 0.2, 0.0, shape_.window, rotation.get()};
    request.exact_layout = pages.front().layout();
    request.sequences = views;
    request.queries = queries_.data();
    Result result;
    result.context.resize(queries_.size(), std::nanf(""));
    result.log_sum_exp.resize(static_cast<size_t>(shape_.rows * shape_.query_heads()), std::nanf(""));
    request.context = result.context.data();
    request.log_sum_exp = result.log_sum_exp.data();
    const backend::AttendShape shape = {shape_.query_heads(), shape_.kv_heads, shape_.head_size, 0, 0, 0, shape_.rows,
                                        std::ssize(views), std::ssize(views) * shape_.tokens};
    const MemoryBlock workspace(backend.attend_workspace(shape), kPoison);
    request.workspace = workspace.data();
    REQUIRE(backend.attend(request).ok());
    CHECK(workspace.canary_alive());
    for (const backend::AttendSequence& view : views) {
      const std::vector<float> scores = score(backend, request, view, score_heads, shape);
      result.scores.insert(result.scores.end(), scores.begin(), scores.end());
    }
    return result;
  }

 private:
  [[nodiscard]] std::vector<float> score(backend::Backend& backend, const backend::AttendRequest& attend,
                                         const backend::AttendSequence& view, ScoreHeads heads,
                                         const backend::AttendShape& shape) const {
    backend::ScoreRequest request;
    request.rules = attend.rules;
    request.exact_layout = attend.exact_layout;
    request.sequence = view;
    request.queries = attend.queries;
    request.log_sum_exp = attend.log_sum_exp;
    request.heads = heads;
    request.list_stride = shape_.tokens;
    std::vector<float> sums(static_cast<size_t>(request.lists() * shape_.tokens), 0.0f);
    request.sums = sums.data();
    const MemoryBlock workspace(backend.score_workspace(shape), kPoison);
    request.workspace = workspace.data();
    REQUIRE(backend.score(request).ok());
    CHECK(workspace.canary_alive());
    return sums;
  }

  [[nodiscard]] ExactPages pages_of(int64_t first_head, int64_t heads) const {
    const int64_t width = heads * shape_.head_size;
    ExactPages pages({32, width, NumberFormat::kF16}, shape_.tokens, kPoison);
    for (const Side side : {Side::kKeys, Side::kValues}) {
      for (int64_t t = 0; t < shape_.tokens; ++t) {
        const float* const token = numbers_[static_cast<size_t>(side)].data() + t * shape_.kv_heads * shape_.head_size;
        pages.put(side, t, token + first_head * shape_.head_size);
      }
    }
    return pages;
  }

  Shape shape_;
  Random random_;
  PositionPages positions_;
  std::vector<int32_t> query_positions_;
  std::vector<float> queries_;
  std::vector<double> frequencies_;
  std::vector<float> numbers_[2];  // keys and values [tokens][width]
};

TEST_CASE("heads come out the same in views of their own and together") {
  for (const Shape& shape : {Shape{}, Shape{.rows = 9}, Shape{.group = 7, .head_size = 8, .tokens = 1300, .rows = 60},
                             Shape{.tokens = 300, .rows = 300, .window = 70}}) {
    const Tokens tokens(shape);
    for (const Subject& subject : subjects()) {
      CAPTURE(subject.name);
      CAPTURE(shape.rows);
      for (const ScoreHeads score_heads :
           {ScoreHeads::kQueryHeads, ScoreHeads::kGroupMean, ScoreHeads::kGroupMaximum}) {
        const Tokens::Result together = tokens.run(*subject.one_thread, 4, score_heads);
        for (const int64_t heads : {1, 2}) {
          CHECK(tokens.run(*subject.one_thread, heads, score_heads) == together);
          CHECK(tokens.run(*subject.three_threads, heads, score_heads) == together);
        }
      }
    }
  }
}

TEST_CASE("scores of rows in pieces are those of all rows at once") {
  for (const ScoreCase& score_case : score_cases()) {
    const AttendSequenceCase& shape = score_case.attend.sequences[score_case.sequence];
    if (shape.rows == 1) continue;
    CAPTURE(describe(score_case));
    ReferenceLogSumExp log_sum_exp;
    const ScoreProblem problem(score_case, kPoison, log_sum_exp);
    for (const Subject& subject : subjects()) {
      CAPTURE(subject.name);
      const Outcome together = problem.run(*subject.three_threads, shape.rows);
      REQUIRE(together.code == absl::StatusCode::kOk);
      for (const int64_t rows : {1, 7, 32}) {
        const std::string wrong = bit_difference(together, problem.run(*subject.one_thread, rows));
        CHECK_MESSAGE(wrong.empty(), wrong);
      }
    }
  }
}

TEST_CASE("what cannot be scored is refused by name") {
  const Shape shape{.tokens = 10, .rows = 1};
  const ExactPages pages({32, shape.head_size, NumberFormat::kF16}, shape.tokens, kZero);
  const PositionPages positions(positions_of(0, shape.tokens), 32, kZero);
  const int32_t query_position = 9;
  float numbers[10] = {};
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    backend::ScoreRequest request;
    request.rules = {4, 4, shape.head_size, 0.2, 0.0, 0, {}};
    request.exact_layout = pages.layout();
    request.sequence = {pages.region(), positions.region(), {}, {}, 0, 1, &query_position, 1, 1};
    request.list_stride = 10;
    request.below = numbers;
    CHECK(argument_of(subject.one_thread->score(request)) == "thresholds");
    request.below = nullptr;
    request.sequence.latent.token_count = 1;
    CHECK(argument_of(subject.one_thread->score(request)) == "sequence");
    request.sequence.latent.token_count = 0;
    request.sequence.first_head = 4;
    CHECK(argument_of(subject.one_thread->score(request)) == "sequence");
  }
}

}  // namespace
}  // namespace foldkv::test
