#include <algorithm>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/conformance/attend_problem.h"
#include "tests/backends/conformance/group_data.h"
#include "tests/backends/conformance/subjects.h"
#include "tests/support/backends.h"

// What architecture.md decision 10 promises: a result depends on its own inputs, not on what else is in the call.
namespace foldkv::test {
namespace {

using backend::Side;

// The numbers of fields "<name> 0", "<name> 1", ... in one list.
std::vector<double> joined(const Outcome& outcome, const std::string& name) {
  std::vector<double> all;
  for (const Field& field : outcome.fields) {
    if (field.name.starts_with(name)) all.insert(all.end(), field.numbers.begin(), field.numbers.end());
  }
  return all;
}

std::vector<AttendPart> chunks(const std::vector<AttendPart>& whole, int64_t rows) {
  std::vector<AttendPart> parts;
  for (const AttendPart& part : whole) {
    for (int64_t first = 0; first < part.row_count; first += rows) {
      parts.push_back({part.sequence, first, std::min(rows, part.row_count - first)});
    }
  }
  return parts;
}

TEST_CASE("attend: a row comes out the same alone, in chunks and beside other sequences") {
  for (const AttendCase& attend_case : attend_cases()) {
    int64_t rows = 0;
    for (const AttendSequenceCase& sequence : attend_case.sequences) rows += sequence.rows;
    if (rows == 1) continue;
    const AttendProblem problem(attend_case, kPoison);
    const std::vector<AttendPart> whole = problem.whole();
    for (const Subject& subject : subjects()) {
      CAPTURE(subject.name);
      CAPTURE(attend_case.name);
      const Outcome together = problem.run(*subject.three_threads, whole);
      REQUIRE(together.code == absl::StatusCode::kOk);
      for (const int64_t size : {int64_t{1}, int64_t{7}, rows}) {
        std::vector<double> context;
        std::vector<double> log_sum_exp;
        for (const AttendPart& part : chunks(whole, size)) {
          const Outcome alone = problem.run(*subject.one_thread, {&part, 1});
          for (const double number : joined(alone, "context")) context.push_back(number);
          for (const double number : joined(alone, "log_sum_exp")) log_sum_exp.push_back(number);
        }
        CHECK(context == joined(together, "context"));
        CHECK(log_sum_exp == joined(together, "log_sum_exp"));
      }
    }
  }
}

GroupShape run_of_tokens() {
  GroupShape shape;
  shape.layers = 3;
  shape.layer_width = 40;
  shape.key_bands = {{70, 4}, {31, 3}};
  shape.value_bands = {{100, 4}};
  shape.correction_rank = 5;
  shape.count = 75;
  shape.first_slot = 4;
  shape.first_latent_slot = 61;
  return shape;
}

// Field reports 10 and 11: what a token is stored as depends on nothing but the token.
TEST_CASE("encode, coefficients and rebuild: a token comes out the same in runs of any length") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const auto run = [&](int64_t length) {
      const GroupData data(run_of_tokens(), 25, kZero);
      backend::Backend& backend = *subject.three_threads;
      const MemoryBlock workspace(backend.latent_workspace(data.latent_shape(5)), kPoison);
      std::vector<float> rebuilt(static_cast<size_t>(data.shape.count * data.shape.width()));
      for (int64_t first = 0; first < data.shape.count; first += length) {
        const int64_t count = std::min(length, data.shape.count - first);
        const int64_t latent_slot = data.shape.first_latent_slot + first;
        for (const Side side : {Side::kKeys, Side::kValues}) {
          REQUIRE(backend
                      .encode({data.exact.rows(side, data.shape.first_slot + first, count), data.mean(side),
                               data.basis(side).data(), &data.layout, data.latents.pool().pages(), latent_slot,
                               workspace.data()})
                      .ok());
        }
        REQUIRE(backend
                    .coefficients({data.exact.rows(Side::kKeys, data.shape.first_slot + first, count), &data.layout,
                                   data.region(true), latent_slot, data.key_basis.data(), workspace.data()})
                    .ok());
        REQUIRE(backend
                    .rebuild({&data.layout, data.region(true), Side::kKeys, latent_slot, count, data.key_basis.data(),
                              0, data.shape.width(), rebuilt.data() + first * data.shape.width(), workspace.data()})
                    .ok());
      }
      return std::pair(data.latents.pool().bytes(), rebuilt);
    };
    const auto together = run(75);
    for (const int64_t length : {1, 7, 64}) {
      const auto apart = run(length);
      CHECK(apart.first == together.first);
      CHECK(apart.second == together.second);
    }
  }
}

TEST_CASE("a deterministic product gives a row the same numbers in any number of rows") {
  constexpr int64_t kInner = 192;
  constexpr int64_t kColumns = 130;
  constexpr int64_t kRows = 65;
  for (const BackendChoice& choice : all_choices()) {
    for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
      const auto backend = open_backend(choice, 2, true);
      CAPTURE(choice.name);
      Random random(26);
      const auto x = random.normals<float>(kRows * kInner);
      const TensorMemory weight(format, kColumns, kInner, kInner, kZero, random.normals<float>(kColumns * kInner));
      const auto run = [&](int64_t rows) {
        std::vector<float> y(static_cast<size_t>(kRows * kColumns));
        for (int64_t first = 0; first < kRows; first += rows) {
          const int64_t count = std::min(rows, kRows - first);
          const auto product = backend->make_product({count, kInner, kColumns, format, true}).value();
          const MemoryBlock workspace(product->workspace_bytes(), kPoison);
          REQUIRE(
              product
                  ->run({x.data() + first * kInner, weight.view(), {}, y.data() + first * kColumns, workspace.data()})
                  .ok());
        }
        return y;
      };
      const std::vector<float> together = run(kRows);
      for (const int64_t rows : {1, 2, 7, 16, 33}) CHECK(run(rows) == together);
    }
  }
}

}  // namespace
}  // namespace foldkv::test
