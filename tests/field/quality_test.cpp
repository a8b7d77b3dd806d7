#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section A: codes that ruin what they should store.
namespace foldkv::test::field {
namespace {

std::vector<LayerShape> four_layers() { return layers_of(4, layer_of(4, 2, 64)); }

// A constant in every key of a layer, on one pair of channels of its first head, that long.
void add_bias(Tokens& text, size_t layer, float length) {
  for (size_t at = 0; at < text.key[layer].size(); at += 128) {
    text.key[layer][at + 3] += 0.6F * length;
    text.key[layer][at + 35] += 0.8F * length;
  }
}

// Edge layers with a bias of 900, the others with one of 20.
Tokens biased_text(const std::vector<LayerShape>& layers, int64_t count, uint64_t seed) {
  Tokens text = text_of(layers, count, seed);
  for (std::vector<float>& rows : text.query) {
    for (float& number : rows) number *= 0.25F;
  }
  for (std::vector<float>& rows : text.value) {
    for (float& number : rows) number += 2.0F;
  }
  for (size_t layer = 0; layer < 4; ++layer) add_bias(text, layer, layer == 0 || layer == 3 ? 900.0F : 20.0F);
  return text;
}

// Mean squares of what keys of a layer lose, over all tokens.
double key_loss(const World& world, const foldkv_sequence* sequence, const Tokens& text, int32_t layer) {
  double loss = 0.0;
  for (int32_t head = 0; head < 2; ++head) {
    const HeadTokens held = held_tokens(world, sequence, layer, head);
    for (size_t i = 0; i < held.keys.size(); ++i) {
      const double difference =
          held.keys[i] -
          double{text.key[static_cast<size_t>(layer)][i / 64 * 128 + static_cast<size_t>(head) * 64 + i % 64]};
      loss += difference * difference;
    }
  }
  return loss / static_cast<double>(stats_of(sequence).tokens);
}

TEST_CASE("a huge constant in the keys of the edge layers costs four bits nothing") {
  const World world(four_layers());
  const Tokens text = biased_text(world.layers(), 257, 1);
  const auto profile = calibrate(world, biased_text(world.layers(), 400, 2));
  const auto sequence = make_sequence(world, profile.get());
  (void)feed(world, {{sequence.get(), &text, 0, 256, false, {}}});
  const double edges = key_loss(world, sequence.get(), text, 0) + key_loss(world, sequence.get(), text, 3);
  const double middle = key_loss(world, sequence.get(), text, 1) + key_loss(world, sequence.get(), text, 2);
  CHECK(edges < 2.0 * middle);
  const Outputs outputs = feed(world, {{sequence.get(), &text, 256, 1, false, {}}});
  for (size_t layer = 0; layer < 4; ++layer) {
    CHECK(cosine(outputs.context[layer], true_context(world.layers()[layer], text, layer, 256, 1)) >= 0.999);
  }
  // Without a mean the bias takes the scales: this is what the family died of.
  ProfileChoice without_mean;
  without_mean.uncentred = true;
  const auto bare = calibrate(world, biased_text(world.layers(), 400, 2), without_mean);
  const auto ruined = make_sequence(world, bare.get());
  (void)feed(world, {{ruined.get(), &text, 0, 256, false, {}}});
  CHECK(key_loss(world, ruined.get(), text, 0) > 10.0 * key_loss(world, sequence.get(), text, 0));
}

TEST_CASE("keys that no mean explains raise the figure that warns of them") {
  const World world(four_layers());
  const auto profile = calibrate(world, text_of(world.layers(), 400, 2));
  Tokens text = text_of(world.layers(), 256, 1);
  const auto warned = [&](const Tokens& fed) {
    const auto sequence = make_sequence(world, profile.get());
    (void)feed(world, {{sequence.get(), &fed, 0, 256, false, {}}});
    const foldkv_sequence_stats stats = stats_of(sequence.get());
    CHECK(stats.expected_energy_out_of_basis[FOLDKV_KEYS] > 0.0);
    return stats.energy_out_of_basis[FOLDKV_KEYS] > 2.0 * stats.expected_energy_out_of_basis[FOLDKV_KEYS];
  };
  CHECK_FALSE(warned(text));
  // As long as the bias above, but of another sign for each token, in layers 0 and 3.
  for (size_t token = 0; token < 256; ++token) {
    const float length = token % 2 == 0 ? 900.0F : -900.0F;
    for (const size_t layer : {size_t{0}, size_t{3}}) {
      text.key[layer][token * 128 + 3] += 0.6F * length;
      text.key[layer][token * 128 + 35] += 0.8F * length;
    }
  }
  CHECK(warned(text));
}

TEST_CASE("edge layers exact, the others in four bits: bytes by hand, and every layer right") {
  const World world(four_layers());
  const Tokens text = biased_text(world.layers(), 257, 3);
  ProfileChoice inner;
  inner.groups = {{1, 2}};
  const auto profile = calibrate(world, text, inner);
  foldkv_sequence_options options = f32_options();
  const auto sequence = make_sequence(world, profile.get(), options);
  (void)feed(world, {{sequence.get(), &text, 0, 256, false, {}}});
  const foldkv_sequence_stats stats = stats_of(sequence.get());
  CHECK(stats.exact_layers == 2);
  CHECK(stats.latent_tokens == 188);
  // 128 codes of 4 bits and a scale, of keys and of values; 3 pages of 64 tokens.
  CHECK(stats.latent_token_bytes == 2 * (64 + 2));
  CHECK(stats.ledger.latent == 3 * 64 * 2 * (64 + 2));
  // Two layers of 16 pages of 16 tokens, and two of 5 pages for 68 tokens, 1,024 bytes a token.
  CHECK(stats.ledger.exact == 2 * (16 + 5) * 16 * 1024);
  CHECK(error_of_feeding(world, {sequence.get(), &text, 256, 1, false, {}}) < 5e-5);
  const auto again = make_sequence(world, profile.get(), options);
  (void)feed(world, {{again.get(), &text, 0, 256, false, {}}});
  const Outputs outputs = feed(world, {{again.get(), &text, 256, 1, false, {}}});
  for (const size_t layer : {size_t{0}, size_t{3}}) {
    CHECK(largest_error(outputs.context[layer], true_context(world.layers()[layer], text, layer, 256, 1)) < 1e-4);
  }
}

TEST_CASE("one channel at 600 times the others is stored unclipped, since scales come from the data") {
  const World world(layers_of(2, layer_of(4, 2, 64)));
  Tokens text = text_of(world.layers(), 200, 4);
  for (std::vector<float>& rows : text.key) {
    for (size_t at = 0; at < rows.size(); at += 64) rows[at + 9] *= 600.0F;
  }
  const auto profile = codec_profile(world, FOLDKV_CODEC_INTEGER);
  const auto sequence = make_sequence(world, profile.get());
  (void)feed(world, {{sequence.get(), &text, 0, 200, false, {}}});
  int64_t latents = 0;
  for (int32_t head = 0; head < 2; ++head) {
    const HeadTokens held = held_tokens(world, sequence.get(), 1, head);
    for (size_t token = 4; token < 136; ++token, ++latents) {
      const float* given = text.key[1].data() + token * 128 + static_cast<size_t>(head) * 64;
      float largest = 0.0F;
      for (size_t i = 0; i < 64; ++i) largest = std::max(largest, std::abs(given[i]));
      // Half a step of amax / 127, and the rounding of the scale to a half: a clipped number is farther off.
      for (size_t i = 0; i < 64; ++i) {
        CHECK(std::abs(held.keys[token * 64 + i] - given[i]) <= largest * (0.5F / 127.0F + 0.0006F));
      }
    }
  }
  CHECK(latents == 2 * 132);
}

TEST_CASE("a scale that no half holds is an error, not a clipped number") {
  const World world(layers_of(2, layer_of(4, 2, 64)));
  Tokens text = text_of(world.layers(), 200, 4);
  const auto profile = calibrate(world, text);
  for (float& number : text.key[1]) number *= 1e8F;
  const auto sequence = make_sequence(world, profile.get());
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  CHECK(try_feed(world, {{sequence.get(), &text, 0, 200, false, {}}}, &outputs, &error) == FOLDKV_E_NUMERIC);
  CHECK(stats_of(sequence.get()).tokens == 0);
}

TEST_CASE("bits of keys and of values are chosen apart, for groups of two and of four") {
  const World world(layers_of(8, layer_of(4, 2, 16)));
  Tokens text = text_of(world.layers(), 301, 5);
  for (std::vector<float>& rows : text.key) {
    for (float& number : rows) number *= 3.0F;  // keys decide: their errors are what moves the output
  }
  for (const int32_t layers : {2, 4}) {
    CAPTURE(layers);
    double error[2][2] = {};
    for (const int32_t key_bits : {4, 8}) {
      for (const int32_t value_bits : {4, 8}) {
        ProfileChoice choice;
        choice.layers_per_group = layers;
        choice.key_bits = key_bits;
        choice.value_bits = value_bits;
        choice.latent_width = 24;
        const auto profile = calibrate(world, text, choice);
        const auto sequence = make_sequence(world, profile.get());
        (void)feed(world, {{sequence.get(), &text, 0, 300, false, {}}});
        const auto twin = make_sequence(world, profile.get());
        (void)feed(world, {{twin.get(), &text, 0, 300, false, {}}});
        CHECK(error_of_feeding(world, {twin.get(), &text, 300, 1, false, {}}) < 3e-5);
        const Outputs outputs = feed(world, {{sequence.get(), &text, 300, 1, false, {}}});
        for (size_t layer = 0; layer < 8; ++layer) {
          error[key_bits / 8][value_bits / 8] +=
              largest_error(outputs.context[layer], true_context(world.layers()[layer], text, layer, 300, 1));
        }
      }
    }
    CHECK(error[1][0] < error[0][1]);
    CHECK(error[1][1] < error[0][0]);
  }
}

// Logits of one exact fork whose keys have moved by `error` against the fork where they have not.
double divergence_of(const World& world, const foldkv_sequence* sequence, const Tokens& text,
                     const std::vector<float>& keys) {
  foldkv_sequence* forks[2] = {};
  for (foldkv_sequence*& fork : forks) REQUIRE(foldkv_sequence_fork(sequence, &fork, nullptr) == FOLDKV_OK);
  const Owned<foldkv_sequence> plain(forks[0]);
  const Owned<foldkv_sequence> moved(forks[1]);
  foldkv_tensor rows{const_cast<float*>(keys.data()), FOLDKV_F32, FOLDKV_HOST, 3, 0, {100, 1, 16, 0}, {}};
  const auto options = sized<foldkv_replace_options>();
  REQUIRE(foldkv_sequence_replace(moved.get(), &options, &rows, nullptr) == FOLDKV_OK);
  std::vector<float> reference = feed(world, {{plain.get(), &text, 100, 1, false, {}}}).context[0];
  std::vector<float> perturbed = feed(world, {{moved.get(), &text, 100, 1, false, {}}}).context[0];
  foldkv_sensitivity* made = nullptr;
  REQUIRE(foldkv_sensitivity_create(world.model(), &made, nullptr) == FOLDKV_OK);
  const Owned<foldkv_sensitivity> sensitivity(made);
  foldkv_tensor left{reference.data(), FOLDKV_F32, FOLDKV_HOST, 2, 0, {1, 16, 0, 0}, {}};
  foldkv_tensor right{perturbed.data(), FOLDKV_F32, FOLDKV_HOST, 2, 0, {1, 16, 0, 0}, {}};
  REQUIRE(foldkv_sensitivity_add(sensitivity.get(), 0, FOLDKV_KEYS, &left, &right, nullptr) == FOLDKV_OK);
  auto figures = sized<foldkv_layer_sensitivity>();
  REQUIRE(foldkv_sensitivity_get(sensitivity.get(), 0, FOLDKV_KEYS, &figures, nullptr) == FOLDKV_OK);
  return figures.divergence;
}

TEST_CASE("of two errors of the same size the check names the one that queries look at") {
  LayerShape layer = layer_of(1, 1, 16);
  layer.frequencies = {};
  const World world({layer});
  Tokens text = text_of(world.layers(), 101, 6);
  for (size_t i = 0; i < 16; ++i) text.query[0][100 * 16 + i] = i == 5 ? 8.0F : 0.0F;
  const auto sequence = make_sequence(world, nullptr);
  (void)feed(world, {{sequence.get(), &text, 0, 100, false, {}}});
  const std::vector<float> noise = numbers_of(100, 7);
  std::vector<float> along(text.key[0].begin(), text.key[0].begin() + 100 * 16);
  std::vector<float> across = along;
  for (size_t token = 0; token < 100; ++token) {
    along[token * 16 + 5] += 0.5F * noise[token];
    across[token * 16 + 6] += 0.5F * noise[token];
  }
  CHECK(divergence_of(world, sequence.get(), text, across) < 1e-9);
  CHECK(divergence_of(world, sequence.get(), text, along) > 1e-5);
}

}  // namespace
}  // namespace foldkv::test::field
