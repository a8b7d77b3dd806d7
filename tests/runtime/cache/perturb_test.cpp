#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/perturbation_noise.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

using backend::Side;

constexpr int64_t kTokens = 300;

std::shared_ptr<Sequence> fed(const std::shared_ptr<Runtime>& runtime, const ToyHost& host, NumberFormat format,
                              int64_t chunk) {
  SequencePolicy policy;
  policy.format = format;
  const auto sequence = make_sequence(runtime, host, nullptr, policy);
  const ToyTokens tokens = host.tokens(kTokens, 1);
  (void)feed_in_chunks(runtime, host, sequence, tokens, 0, kTokens, chunk);
  return sequence;
}

PerturbQuestion question_of(Side side, int64_t first, int64_t count) {
  return {1, side, 0.05, 11, 3, first, count};
}

// The definition, head by head, on what the sequence held.
std::vector<float> by_definition(std::vector<float> rows, const ToyShape& shape, const PerturbQuestion& question) {
  const auto size = static_cast<size_t>(shape.head_size);
  for (int64_t token = question.first_token; token < question.first_token + question.token_count; ++token) {
    for (int64_t head = 0; head < shape.kv_heads; ++head) {
      const NoiseKey key{question.seed,  question.example, question.layer, static_cast<int32_t>(question.side), head,
                         static_cast<int32_t>(token)};
      add_perturbation({rows.data() + static_cast<size_t>(token * shape.key_width() + head * shape.head_size), size},
                       question.scale, key);
    }
  }
  return rows;
}

TEST_CASE("one side of one layer is perturbed in the range asked for, nothing else") {
  const ToyHost host{ToyShape{}};
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    for (const Side side : {Side::kKeys, Side::kValues}) {
      const auto sequence = fed(runtime, host, NumberFormat::kF32, kTokens);
      const PerturbQuestion question = question_of(side, 4, 290);
      const Side other = side == Side::kKeys ? Side::kValues : Side::kKeys;
      const std::vector<float> expected = by_definition(rebuilt(*sequence, 1, side), host.shape(), question);
      const std::vector<float> same = rebuilt(*sequence, 1, other);
      const std::vector<float> above = rebuilt(*sequence, 2, side);
      REQUIRE(sequence->perturb(question).ok());
      CHECK(rebuilt(*sequence, 1, side) == expected);
      CHECK(rebuilt(*sequence, 1, other) == same);
      CHECK(rebuilt(*sequence, 2, side) == above);
    }
  }
}

TEST_CASE("neither chunks, nor the backend, nor a range cut in two change the noise") {
  const ToyHost host{ToyShape{}};
  std::vector<float> first;
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    for (const int64_t chunk : {kTokens, int64_t{37}}) {
      const auto sequence = fed(runtime, host, NumberFormat::kF16, chunk);
      if (chunk == kTokens) {
        REQUIRE(sequence->perturb(question_of(Side::kValues, 0, kTokens)).ok());
      } else {
        REQUIRE(sequence->perturb(question_of(Side::kValues, 120, 180)).ok());
        REQUIRE(sequence->perturb(question_of(Side::kValues, 0, 120)).ok());
      }
      if (first.empty()) first = rebuilt(*sequence, 1, Side::kValues);
      CHECK(rebuilt(*sequence, 1, Side::kValues) == first);
    }
  }
}

TEST_CASE("noise is as large as it should be") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto sequence = fed(runtime, host, NumberFormat::kF32, kTokens);
  const std::vector<float> before = rebuilt(*sequence, 1, Side::kValues);
  REQUIRE(sequence->perturb(question_of(Side::kValues, 0, kTokens)).ok());
  const std::vector<float> after = rebuilt(*sequence, 1, Side::kValues);
  // alpha * sqrt(head size) of the vectors' length, within 5 standard errors of 4,800 numbers.
  const double expected = 0.05 * std::sqrt(static_cast<double>(host.shape().head_size));
  CHECK(relative_error(after, {before.begin(), before.end()}) == doctest::Approx(expected).epsilon(0.06));
}

TEST_CASE("positions count, not the order of tokens") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(2, 1);
  const auto at = [&](int32_t position) {
    const auto sequence = make_sequence(runtime, host, nullptr, {.format = NumberFormat::kF32});
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 2, false, {position, 100}}});
    REQUIRE(sequence->perturb(question_of(Side::kValues, 0, 2)).ok());
    return rebuilt(*sequence, 1, Side::kValues);
  };
  const std::vector<float> low = at(0);
  const std::vector<float> high = at(50);
  const auto width = host.shape().key_width();
  CHECK(std::vector<float>(low.begin(), low.begin() + width) != std::vector<float>(high.begin(), high.begin() + width));
  CHECK(std::vector<float>(low.begin() + width, low.end()) == std::vector<float>(high.begin() + width, high.end()));
}

TEST_CASE("what cannot be perturbed stays as it is") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto half = fed(runtime, host, NumberFormat::kF16, kTokens);
  const std::vector<float> before = everything(*half);
  PerturbQuestion loud = question_of(Side::kValues, 0, kTokens);
  loud.scale = 1e6;
  Status status = half->perturb(loud);
  CHECK(status.code() == absl::StatusCode::kUnknown);
  CHECK(argument_of(status) == "options.scale");
  CHECK(everything(*half) == before);

  const auto compressed = make_sequence(runtime, host, calibrate(runtime, host, {2, 4, 0, 16, 0}));
  const ToyTokens tokens = host.tokens(kTokens, 1);
  (void)run_step(runtime, host, {{compressed, &tokens, 0, kTokens, false, {}}});
  status = compressed->perturb(question_of(Side::kValues, 4, 1));
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(argument_of(status) == "options.first_token");
  CHECK(compressed->perturb(question_of(Side::kValues, 0, 4)).ok());

  const auto step = Step::begin(runtime, {{half, 1, {}, false}}, {});
  CHECK(argument_of(half->perturb(question_of(Side::kValues, 0, 1))) == "sequence");
}

}  // namespace
}  // namespace foldkv::test
