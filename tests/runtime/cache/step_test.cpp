#include "runtime/cache/step.h"

#include <cmath>
#include <limits>

#include "doctest/doctest.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

SequencePolicy exact_f32() {
  SequencePolicy policy;
  policy.format = NumberFormat::kF32;
  return policy;
}

std::vector<ToyShape> shapes() {
  std::vector<ToyShape> all(8);
  all[1].kv_heads = 1;
  all[1].pairing = Pairing::kInterleaved;
  all[2].query_heads = 6;
  all[2].kv_heads = 6;
  all[2].head_size = 5;
  all[2].head_size = 6;
  all[3].window = 7;
  all[4].soft_cap = 2.0;
  all[5].norms = true;
  all[6].query_heads = 9;
  all[6].kv_heads = 3;
  all[6].head_size = 64;
  all[7].head_size = 1;
  return all;
}

TEST_CASE("an exact cache gives the attention of the oracle, for every shape and backend") {
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    for (const ToyShape& shape : shapes()) {
      const ToyHost host(shape);
      const ToyTokens tokens = host.tokens(70, 3);
      const auto sequence = make_sequence(runtime, host, nullptr, exact_f32());
      const LayerOutputs outputs = feed_in_chunks(runtime, host, sequence, tokens, 0, 70, 33);
      for (int64_t layer = 0; layer < shape.layers; ++layer) {
        const auto index = static_cast<size_t>(layer);
        const std::vector<double> expected = oracle_attention(host, layer, tokens.query[index], tokens.key[index],
                                                              tokens.value[index], 0, 70);
        CHECK(largest_difference(outputs[index], expected) < 2e-5);
      }
    }
  }
}

TEST_CASE("hidden states and their own queries, keys and values give the same") {
  ToyShape shape;
  shape.hidden = 24;
  shape.biases = true;
  for (const std::string& name : backend_names()) {
    for (bool deterministic : {false, true}) {
      const auto runtime = open_runtime({name, 2, deterministic});
      const ToyHost host(shape);
      const ToyTokens tokens = host.tokens(40, 5);
      const auto from_hidden = make_sequence(runtime, host, nullptr, exact_f32());
      const auto from_qkv = make_sequence(runtime, host, nullptr, exact_f32());
      const LayerOutputs a = feed_in_chunks(runtime, host, from_hidden, tokens, 0, 40, 13, {true, false});
      const LayerOutputs b = feed_in_chunks(runtime, host, from_qkv, tokens, 0, 40, 13);
      for (size_t layer = 0; layer < a.size(); ++layer) {
        const std::vector<double> expected(b[layer].begin(), b[layer].end());
        CHECK(relative_error(a[layer], expected) < 1e-5);
      }
    }
  }
}

TEST_CASE("a projected output is the context times the output weights") {
  ToyShape shape;
  shape.hidden = 24;
  shape.biases = true;
  const auto runtime = open_runtime({"cpu", 2});
  const ToyHost host(shape);
  const ToyTokens tokens = host.tokens(20, 5);
  const LayerOutputs context =
      run_step(runtime, host, {{make_sequence(runtime, host, nullptr, exact_f32()), &tokens, 0, 20, false, {}}});
  const LayerOutputs projected = run_step(
      runtime, host, {{make_sequence(runtime, host, nullptr, exact_f32()), &tokens, 0, 20, false, {}}}, {true, true});
  for (size_t layer = 0; layer < context.size(); ++layer) {
    const LayerWeights& weights = host.model()->weights(static_cast<int64_t>(layer));
    std::vector<double> expected;
    for (int64_t row = 0; row < 20; ++row) {
      for (int64_t out = 0; out < shape.hidden; ++out) {
        double sum = number_at(NumberFormat::kF32, weights.output_bias.data, out);
        for (int64_t i = 0; i < shape.query_width(); ++i) {
          sum += double{context[layer][static_cast<size_t>(row * shape.query_width() + i)]} *
                 number_at(NumberFormat::kF32, weights.output.row(out), i);
        }
        expected.push_back(sum);
      }
    }
    CHECK(relative_error(projected[layer], expected) < 1e-5);
  }
}

TEST_CASE("explicit positions may jump; queries see what lies behind them") {
  ToyShape shape;
  const ToyHost host(shape);
  const ToyTokens tokens = host.tokens(3, 9);
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    const auto jumped = make_sequence(runtime, host, nullptr, exact_f32());
    const auto shifted = make_sequence(runtime, host, nullptr, exact_f32());
    // Rotation depends on differences of positions alone, so a common shift changes nothing.
    const LayerOutputs a = run_step(runtime, host, {{jumped, &tokens, 0, 3, false, {0, 5, 1000}}});
    const LayerOutputs b = run_step(runtime, host, {{shifted, &tokens, 0, 3, false, {4000, 4005, 5000}}});
    CHECK(jumped->next_position() == 1001);
    CHECK(shifted->next_position() == 5001);
    for (size_t layer = 0; layer < a.size(); ++layer) {
      const std::vector<double> expected(a[layer].begin(), a[layer].end());
      CHECK(largest_difference(b[layer], expected) < 2e-3);
    }
    CHECK(*jumped->positions() == std::vector<int32_t>{0, 5, 1000});
  }
}

TEST_CASE("a step that is not committed leaves no trace") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(50, 2);
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr, exact_f32());
  (void)feed_in_chunks(runtime, host, sequence, tokens, 0, 33, 33);
  const Ledger before = runtime->arena().stats().ledger;
  {
    auto step = Step::begin(runtime, {{sequence, 10, {}, false}}, {});
    REQUIRE(step.ok());
    GatheredInput input;
    gather_input(host, {{sequence, &tokens, 33, 10, false, {}}}, 0, {}, input);
    REQUIRE((*step)->attend(0, input.views).ok());
    CHECK_FALSE((*step)->commit().ok());  // one layer of four
  }
  CHECK(sequence->storage().token_count() == 33);
  CHECK(sequence->next_position() == 33);
  for (size_t role = 0; role < kRoleCount; ++role) {
    CHECK(runtime->arena().stats().ledger.of(static_cast<Role>(role)) == before.of(static_cast<Role>(role)));
  }
  const LayerOutputs after = run_step(runtime, host, {{sequence, &tokens, 33, 1, false, {}}});
  const auto fresh = make_sequence(runtime, host, nullptr, exact_f32());
  (void)feed_in_chunks(runtime, host, fresh, tokens, 0, 33, 33);
  CHECK(after == run_step(runtime, host, {{fresh, &tokens, 33, 1, false, {}}}));
}

TEST_CASE("layers come in order, each once; input must be finite; then the same layer may be tried again") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(5, 2);
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    const auto sequence = make_sequence(runtime, host, nullptr);
    auto step = Step::begin(runtime, {{sequence, 5, {}, false}}, {});
    REQUIRE(step.ok());
    GatheredInput input;
    gather_input(host, {{sequence, &tokens, 0, 5, false, {}}}, 0, {}, input);
    CHECK(argument_of((*step)->attend(1, input.views)) == "layer");
    for (auto [vector, argument] : {std::pair{&input.query, "query"}, {&input.key, "key"}, {&input.value, "value"}}) {
      for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        const float good = (*vector)[11];
        (*vector)[11] = bad;
        const Status status = (*step)->attend(0, input.views);
        CHECK(status.code() == absl::StatusCode::kUnknown);
        CHECK(argument_of(status) == argument);
        CHECK(std::isnan(input.output[0]));  // outputs are untouched
        (*vector)[11] = good;
      }
    }
    const float good = input.key[3];
    input.key[3] = 1e6F;  // beyond f16, the format of this cache
    CHECK(argument_of((*step)->attend(0, input.views)) == "key");
    CHECK(std::isnan(input.output[0]));
    input.key[3] = good;
    CHECK((*step)->attend(0, input.views).ok());
    CHECK(argument_of((*step)->attend(0, input.views)) == "layer");
    for (int64_t layer = 1; layer < 4; ++layer) {
      GatheredInput next;
      gather_input(host, {{sequence, &tokens, 0, 5, false, {}}}, layer, {}, next);
      CHECK((*step)->attend(layer, next.views).ok());
    }
    CHECK((*step)->commit().ok());
    CHECK_FALSE((*step)->commit().ok());
    CHECK_FALSE((*step)->attend(4, input.views).ok());
  }
}

TEST_CASE("begin refuses what it cannot do and names it") {
  const ToyHost host{ToyShape{}};
  const ToyHost other{ToyShape{}};
  const ToyTokens tokens = host.tokens(5, 2);
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr);
  const auto refused = [&](std::vector<Feed> feeds, const StepRules& rules = {}) {
    const auto step = Step::begin(runtime, std::move(feeds), rules);
    REQUIRE_FALSE(step.ok());
    return argument_of(step.status());
  };
  CHECK(refused({}) == "feed_count");
  CHECK(refused({{sequence, 0, {}, false}}) == "feeds[0].token_count");
  CHECK(refused({{sequence, 1, {}, false}, {sequence, 1, {}, false}}) == "feeds[1].sequence");
  CHECK(refused({{sequence, 1, {}, false}, {make_sequence(runtime, other, nullptr), 1, {}, false}}) ==
        "feeds[1].sequence");
  CHECK(refused({{sequence, 2, {5, 5}, false}}) == "feeds[0].positions");
  CHECK(refused({{sequence, 2, {5, 4}, false}}) == "feeds[0].positions");
  CHECK(refused({{sequence, 1, {-1}, false}}) == "feeds[0].positions");
  CHECK(refused({{sequence, 1, {}, false}}, {true, false}) == "options.input");
  CHECK(refused({{sequence, 1, {}, false}}, {false, true}) == "options.output");
  const auto elsewhere = make_sequence(open_runtime({}), host, nullptr);
  CHECK(refused({{elsewhere, 1, {}, false}}) == "feeds[0].sequence");
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 5, false, {10, 11, 12, 13, 14}}});
  CHECK(refused({{sequence, 1, {14}, false}}) == "feeds[0].positions");
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 1, false, {std::numeric_limits<int32_t>::max()}}});
  CHECK(refused({{sequence, 1, {}, false}}) == "feeds[0].positions");
  auto open = Step::begin(runtime, {{make_sequence(runtime, host, nullptr), 1, {}, false}}, {});
  CHECK(open.ok());
}

TEST_CASE("a sequence in an open step is refused everywhere and free again afterwards") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr);
  {
    auto step = Step::begin(runtime, {{sequence, 1, {}, false}}, {});
    REQUIRE(step.ok());
    CHECK_FALSE(Step::begin(runtime, {{sequence, 1, {}, false}}, {}).ok());
    CHECK(sequence->compress().code() == absl::StatusCode::kFailedPrecondition);
  }
  CHECK(sequence->compress().ok());
  CHECK(Step::begin(runtime, {{sequence, 1, {}, false}}, {}).ok());
}

}  // namespace
}  // namespace foldkv::test
