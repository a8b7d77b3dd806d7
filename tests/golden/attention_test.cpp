#include "backends/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/reference/rotation.h"
#include "doctest/doctest.h"
#include "tests/golden/golden_rotation.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/golden.h"

namespace foldkv {
namespace {

// A case of the golden file, in numbers.
struct GoldenAttention {
  explicit GoldenAttention(const nlohmann::json& golden)
      : frequencies(test::numbers(golden["inverse_frequencies"])),
        key_positions(golden["key_positions"].get<std::vector<int32_t>>()),
        query_positions(golden["query_positions"].get<std::vector<int32_t>>()),
        q(test::numbers(golden["q"])),
        k(test::numbers(golden["k"])),
        v(test::numbers(golden["v"])),
        output(test::numbers(golden["output"])),
        log_sum_exp(test::numbers(golden["log_sum_exp"])) {
    rules.query_heads = golden["query_heads"].get<int64_t>();
    rules.kv_heads = golden["kv_heads"].get<int64_t>();
    rules.head_size = golden["head_size"].get<int64_t>();
    rules.scale = 1.0 / std::sqrt(static_cast<double>(rules.head_size));
    rules.rotation = test::golden_rotation(golden, frequencies);
  }
  GoldenAttention(const GoldenAttention&) = delete;

  [[nodiscard]] int64_t tokens() const { return static_cast<int64_t>(key_positions.size()); }
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(query_positions.size()); }
  [[nodiscard]] int64_t key_width() const { return rules.kv_heads * rules.head_size; }
  [[nodiscard]] int64_t query_width() const { return rules.query_heads * rules.head_size; }

  std::vector<double> frequencies;
  std::vector<int32_t> key_positions, query_positions;
  std::vector<double> q, k, v, output, log_sum_exp;
  backend::AttentionRules rules;
};

void check_near(double actual, double expected, double tolerance) {
  CHECK(std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected)));
}

TEST_CASE("attention: the reference in double precision") {
  const nlohmann::json file = test::read_golden("attention");
  const auto tolerance = file["tolerance"].get<double>();
  for (const nlohmann::json& json : file["cases"]) {
    GoldenAttention golden(json);
    const backend::AttentionRules& rules = golden.rules;
    for (int64_t t = 0; t < golden.tokens(); ++t) {
      backend::reference::rotate_heads(rules.rotation, golden.key_positions[static_cast<size_t>(t)], rules.kv_heads,
                                       rules.head_size, golden.k.data() + t * golden.key_width());
    }
    backend::reference::VisibleTokens tokens;
    tokens.exact_count = golden.tokens();
    tokens.keys = golden.k.data();
    tokens.positions = golden.key_positions.data();
    tokens.values = golden.v.data();
    std::vector<double> weights(golden.key_positions.size());
    std::vector<double> context(static_cast<size_t>(golden.query_width()));
    std::vector<double> log_sum_exp(static_cast<size_t>(rules.query_heads));
    for (int64_t row = 0; row < golden.rows(); ++row) {
      const int32_t position = golden.query_positions[static_cast<size_t>(row)];
      double* const query = golden.q.data() + row * golden.query_width();
      backend::reference::rotate_heads(rules.rotation, position, rules.query_heads, rules.head_size, query);
      backend::reference::attend_row(rules, tokens, query, position, {weights.data(), nullptr}, context.data(),
                                     log_sum_exp.data());
      for (size_t i = 0; i < context.size(); ++i) {
        check_near(context[i], golden.output[static_cast<size_t>(row) * context.size() + i], tolerance);
      }
      for (size_t i = 0; i < log_sum_exp.size(); ++i) {
        check_near(log_sum_exp[i], golden.log_sum_exp[static_cast<size_t>(row) * log_sum_exp.size() + i], tolerance);
      }
    }
  }
}

std::vector<float> floats(const std::vector<double>& numbers) { return {numbers.begin(), numbers.end()}; }

// Queries through prepare_heads, keys and values through append.
void check_backend(backend::Backend& backend, const GoldenAttention& golden) {
  backend::AttentionRules rules = golden.rules;
  const test::PreparedRotation rotation(backend, rules.rotation);
  rules.rotation = rotation.get();
  const auto tensor = [](const std::vector<double>& numbers, int64_t rows) {
    const int64_t columns = static_cast<int64_t>(numbers.size()) / rows;
    return test::TensorMemory(NumberFormat::kF32, rows, columns, columns, test::kZero, floats(numbers));
  };
  const test::TensorMemory keys = tensor(golden.k, golden.tokens());
  const test::TensorMemory values = tensor(golden.v, golden.tokens());
  const test::TensorMemory queries = tensor(golden.q, golden.rows());
  const backend::ExactLayout layout{16, golden.key_width(), NumberFormat::kF32};
  const test::ExactPages pages(layout, golden.tokens(), test::kPoison);
  const test::PositionPages positions(golden.key_positions, 16, test::kPoison);
  REQUIRE(backend.append({keys.view(), values.view(), rules.head_size, nullptr, 0.0, layout, pages.region(), 0}).ok());
  std::vector<float> rotated(golden.q.size());
  REQUIRE(backend
              .prepare_heads({queries.view(), rules.query_heads, rules.head_size, nullptr, 0.0, rules.rotation,
                              golden.query_positions.data(), rotated.data()})
              .ok());
  backend::AttendSequence sequence;
  sequence.exact = pages.region();
  sequence.exact_positions = positions.region();
  sequence.row_count = golden.rows();
  sequence.query_positions = golden.query_positions.data();
  const test::MemoryBlock workspace(backend.attend_workspace({rules.query_heads, rules.kv_heads, rules.head_size, 0, 0,
                                                              0, golden.rows(), 1, golden.tokens()}),
                                    test::kPoison);
  std::vector<float> context(golden.output.size(), std::nanf(""));
  std::vector<float> log_sum_exp(golden.log_sum_exp.size(), std::nanf(""));
  REQUIRE(
      backend
          .attend(
              {.rules = rules,
               .exact_layout = layout,
               .sequences = {&sequence, 1},
               .queries = rotated.data(),
               .context = context.data(),
               .log_sum_exp = log_sum_exp.data(),
               .workspace = workspace.data()})
          .ok());
  for (size_t i = 0; i < context.size(); ++i) {
    check_near(static_cast<double>(context[i]), golden.output[i], 2e-6);
  }
  for (size_t i = 0; i < log_sum_exp.size(); ++i) {
    check_near(static_cast<double>(log_sum_exp[i]), golden.log_sum_exp[i], 2e-6);
  }
}

TEST_CASE("attention: every backend") {
  const nlohmann::json file = test::read_golden("attention");
  for (const test::BackendChoice& choice : test::all_choices()) {
    CAPTURE(choice.name);
    const auto backend = test::open_backend(choice, 1);
    for (const nlohmann::json& golden : file["cases"]) check_backend(*backend, GoldenAttention(golden));
  }
}

}  // namespace
}  // namespace foldkv
