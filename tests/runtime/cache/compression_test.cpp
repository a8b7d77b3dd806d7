#include <cmath>

#include "doctest/doctest.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

SequencePolicy small_policy(NumberFormat format = NumberFormat::kF32) {
  SequencePolicy policy;
  policy.format = format;
  policy.sink_tokens = 3;
  policy.recent_tokens = 10;
  policy.fold_tokens = 20;
  return policy;
}

// All tokens of one layer and side as attention sees them, before rotation.
std::vector<float> rebuilt(const Sequence& sequence, int64_t layer, backend::Side side, int64_t width) {
  std::vector<float> rows(static_cast<size_t>(sequence.storage().token_count() * width));
  const MutableTensorView view{reinterpret_cast<std::byte*>(rows.data()), NumberFormat::kF32,
                               sequence.storage().token_count(), width, width};
  const Status status = sequence.rebuild({layer, side, false, 0, sequence.storage().token_count()}, view);
  REQUIRE_MESSAGE(status.ok(), std::string(status.message()));
  return rows;
}

std::vector<ToyShape> shapes() {
  std::vector<ToyShape> all(5);
  all[1].kv_heads = 1;
  all[1].pairing = Pairing::kInterleaved;
  all[2].query_heads = 9;
  all[2].kv_heads = 3;
  all[2].head_size = 64;
  all[3].norms = true;
  all[4].key_offset = 300.0;
  return all;
}

TEST_CASE("attention over sinks, latents and recent tokens equals the oracle over the rebuilt keys and values") {
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name, 2});
    for (const ToyShape& shape : shapes()) {
      const ToyHost host(shape);
      for (int32_t rank : {0, 4}) {
        for (int32_t bits : {3, 4, 8}) {
          const auto profile = calibrate(runtime, host, {2, bits, 0, 16, rank});
          const auto sequence = make_sequence(runtime, host, profile, small_policy());
          ToyTokens tokens = host.tokens(101, 21);
          (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
          CHECK(sequence->storage().latent_tokens() == 87);
          // The rebuilt history, then the new token exact: what the next query must see.
          std::vector<std::vector<float>> keys;
          std::vector<std::vector<float>> values;
          for (int64_t layer = 0; layer < shape.layers; ++layer) {
            keys.push_back(rebuilt(*sequence, layer, backend::Side::kKeys, shape.key_width()));
            values.push_back(rebuilt(*sequence, layer, backend::Side::kValues, shape.key_width()));
          }
          const LayerOutputs outputs = run_step(runtime, host, {{sequence, &tokens, 100, 1, false, {}}});
          for (int64_t layer = 0; layer < shape.layers; ++layer) {
            const auto index = static_cast<size_t>(layer);
            // The cache holds normed keys; the oracle must not norm them again.
            const std::vector<float> all_keys = rebuilt(*sequence, layer, backend::Side::kKeys, shape.key_width());
            std::vector<float> value = values[index];
            const auto newest = tokens.value[index].begin() + 100 * shape.key_width();
            value.insert(value.end(), newest, newest + shape.key_width());
            ToyShape plain = shape;
            plain.norms = false;
            const ToyHost plain_host(plain);
            std::vector<float> queries = tokens.query[index];
            if (shape.norms) continue;  // covered by the exact test; queries would need the norm
            const std::vector<double> expected =
                oracle_attention(plain_host, layer, queries, all_keys, value, 100, 1);
            CHECK(relative_error(outputs[index], expected) < 3e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("full rank at 8 bits is close to the exact cache, 4 bits less so, and sinks and recent tokens are exact") {
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    const ToyShape shape;
    const ToyHost host(shape);
    const ToyTokens tokens = host.tokens(100, 21);
    double error_of_bits[2] = {};
    for (int index = 0; index < 2; ++index) {
      const auto profile = calibrate(runtime, host, {2, index == 0 ? 8 : 4, 2 * shape.key_width(), 16, 0});
      const auto sequence = make_sequence(runtime, host, profile, small_policy());
      (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
      const std::vector<float> keys = rebuilt(*sequence, 1, backend::Side::kKeys, shape.key_width());
      const std::vector<double> expected(tokens.key[1].begin(), tokens.key[1].end());
      error_of_bits[index] = relative_error(keys, expected);
      const auto width = static_cast<size_t>(shape.key_width());
      CHECK(std::equal(keys.begin(), keys.begin() + 3 * static_cast<std::ptrdiff_t>(width), tokens.key[1].begin()));
      CHECK(std::equal(keys.begin() + 90 * static_cast<std::ptrdiff_t>(width), keys.end(),
                       tokens.key[1].begin() + 90 * static_cast<std::ptrdiff_t>(width)));
    }
    CHECK(error_of_bits[0] < 0.01);
    CHECK(error_of_bits[1] > 2 * error_of_bits[0]);
    CHECK(error_of_bits[1] < 0.15);
  }
}

TEST_CASE("a constant in the keys costs nothing with a mean and much without") {
  ToyShape shape;
  shape.key_offset = 50.0;
  const ToyHost host(shape);
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(100, 4);
  double errors[2] = {};
  for (int index = 0; index < 2; ++index) {
    ProfileChoice choice{2, 4, 0, 16, 0};
    choice.uncentred = index == 1;
    const auto sequence = make_sequence(runtime, host, calibrate(runtime, host, choice), small_policy());
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
    std::vector<float> keys = rebuilt(*sequence, 0, backend::Side::kKeys, shape.key_width());
    std::vector<double> expected(tokens.key[0].begin(), tokens.key[0].end());
    for (float& number : keys) number -= 50.0F;
    for (double& number : expected) number -= 50.0;
    errors[index] = relative_error(keys, expected);
  }
  CHECK(errors[1] > 2 * errors[0]);
}

TEST_CASE("the correction takes error out of the keys and costs what the stats say") {
  const ToyHost host{ToyShape{}};
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name});
    const ToyTokens tokens = host.tokens(100, 4);
    double errors[2] = {};
    int64_t bytes[2] = {};
    for (int index = 0; index < 2; ++index) {
      const auto profile = calibrate(runtime, host, {4, 3, 8, 8, index == 1 ? 6 : 0});
      const auto sequence = make_sequence(runtime, host, profile, small_policy());
      (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
      bytes[index] = sequence->storage().ledger().total();
      for (int64_t layer = 0; layer < 4; ++layer) {
        const auto& key = tokens.key[static_cast<size_t>(layer)];
        errors[index] += relative_error(rebuilt(*sequence, layer, backend::Side::kKeys, host.shape().key_width()),
                                        {key.begin(), key.end()});
      }
    }
    CHECK(errors[1] < 0.9 * errors[0]);
    // Two pages of 64 tokens, 6 coefficients of 2 bytes; a basis of 64 x 6 halves.
    CHECK(bytes[1] - bytes[0] == 2 * 64 * 6 * 2 + 64 * 6 * 2);
  }
}

TEST_CASE("generated tokens fold in runs, one at a time or many at once, into the same bytes") {
  const ToyHost host{ToyShape{}};
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name, 2});
    const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
    const ToyTokens tokens = host.tokens(200, 8);
    const auto singly = make_sequence(runtime, host, profile, small_policy());
    const auto together = make_sequence(runtime, host, profile, small_policy());
    (void)run_step(runtime, host, {{singly, &tokens, 0, 60, false, {}}});
    (void)run_step(runtime, host, {{together, &tokens, 0, 60, false, {}}});
    int64_t most_exact = 0;
    for (int64_t token = 60; token < 145; ++token) {
      (void)run_step(runtime, host, {{singly, &tokens, token, 1, false, {}}});
      most_exact = std::max(most_exact, singly->storage().grouped_exact_tokens());
    }
    (void)run_step(runtime, host, {{together, &tokens, 60, 85, false, {}}});
    CHECK(most_exact == 3 + 10 + 19);
    CHECK(singly->storage().latent_tokens() == 47 + 80);
    CHECK(together->storage().latent_tokens() == 47 + 80);
    for (int64_t layer = 0; layer < 4; ++layer) {
      for (backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
        CHECK(rebuilt(*singly, layer, side, 16) == rebuilt(*together, layer, side, 16));
      }
    }
    std::vector<int32_t> expected(145);
    for (int32_t position = 0; position < 145; ++position) expected[static_cast<size_t>(position)] = position;
    CHECK(*singly->positions() == expected);
  }
}

TEST_CASE("compress at the host's word equals compression at the end of the prompt") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(101, 8);
  const auto automatic = make_sequence(runtime, host, profile, small_policy());
  const auto asked = make_sequence(runtime, host, profile, small_policy());
  (void)run_step(runtime, host, {{automatic, &tokens, 0, 100, false, {}}});
  (void)run_step(runtime, host, {{asked, &tokens, 0, 100, true, {}}});
  CHECK(asked->storage().latent_tokens() == 0);
  REQUIRE(asked->compress().ok());
  REQUIRE(asked->compress().ok());
  CHECK(asked->storage().latent_tokens() == 87);
  CHECK(run_step(runtime, host, {{automatic, &tokens, 100, 1, false, {}}}) ==
        run_step(runtime, host, {{asked, &tokens, 100, 1, false, {}}}));
}

TEST_CASE("layers in no group keep all tokens exact beside compressed ones") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  auto profile = std::make_shared<Profile>(*calibrate(runtime, host, {2, 4, 0, 16, 0}));
  profile->groups.pop_back();  // layers 2 and 3
  profile->plans[0].groups.pop_back();
  REQUIRE(finish_profile(*profile).ok());
  const auto sequence = make_sequence(runtime, host, profile, small_policy());
  const ToyTokens tokens = host.tokens(100, 8);
  const LayerOutputs outputs = feed_in_chunks(runtime, host, sequence, tokens, 0, 99, 99);
  const LayerOutputs last = run_step(runtime, host, {{sequence, &tokens, 99, 1, false, {}}});
  CHECK(largest_difference(last[3], oracle_attention(host, 3, tokens.query[3], tokens.key[3], tokens.value[3], 99, 1)) < 2e-5);
  CHECK(rebuilt(*sequence, 2, backend::Side::kKeys, 16) == tokens.key[2]);
  CHECK(rebuilt(*sequence, 1, backend::Side::kKeys, 16) != tokens.key[1]);
}

TEST_CASE("the profile's mean serves when asked for, and costs the sequence nothing") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 0});
  SequencePolicy policy = small_policy();
  policy.mean = MeanSource::kProfile;
  const auto sequence = make_sequence(runtime, host, profile, policy);
  const ToyTokens tokens = host.tokens(100, 8);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
  CHECK(sequence->storage().ledger().of(Role::kMean) == 0);
  const std::vector<float> keys = rebuilt(*sequence, 0, backend::Side::kKeys, 16);
  CHECK(relative_error(keys, {tokens.key[0].begin(), tokens.key[0].end()}) < 0.5);
}

}  // namespace
}  // namespace foldkv::test
