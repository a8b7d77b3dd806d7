#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section A: codes that ruin what they should store, and the same cache read in more than one way.
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
  auto integer = sized<foldkv_codec_options>();
  integer.codec = FOLDKV_CODEC_INTEGER;
  foldkv_profile* made = nullptr;
  REQUIRE(foldkv_profile_from_codec(world.model(), &integer, &made, nullptr) == FOLDKV_OK);
  const Owned<foldkv_profile> profile(made);
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

TEST_CASE("a second turn over a compressed first one is what one prompt is") {
  const World world(layers_of(4, layer_of(8, 2, 64)));
  const Tokens text = text_of(world.layers(), 201, 8);
  for (const int32_t bits : {4, 8, 16}) {
    CAPTURE(bits);
    ProfileChoice choice;
    choice.key_bits = choice.value_bits = bits;
    const auto profile = calibrate(world, text, choice);
    for (const int32_t mean : {FOLDKV_MEAN_PROFILE, FOLDKV_MEAN_SEQUENCE}) {
      foldkv_sequence_options options = f32_options();
      options.recent_tokens = 32;
      options.fold_tokens = 16;
      options.mean = mean;
      const auto once = make_sequence(world, profile.get(), options);
      const auto turns = make_sequence(world, profile.get(), options);
      (void)feed(world, {{once.get(), &text, 0, 200, false, {}}});
      (void)feed(world, {{turns.get(), &text, 0, 90, false, {}}});
      (void)generate(world, turns.get(), text, 90, 10);
      (void)feed(world, {{turns.get(), &text, 100, 100, false, {}}});
      for (const auto* sequence : {&once, &turns})
        REQUIRE(foldkv_sequence_compress(sequence->get(), nullptr) == FOLDKV_OK);
      CHECK(stats_of(turns.get()).latent_tokens == stats_of(once.get()).latent_tokens);
      if (mean == FOLDKV_MEAN_PROFILE) {
        CHECK(held_numbers(world, once.get()) == held_numbers(world, turns.get()));
        CHECK(feed(world, {{once.get(), &text, 200, 1, false, {}}}) ==
              feed(world, {{turns.get(), &text, 200, 1, false, {}}}));
      } else {
        // Each sequence has frozen the mean of its first run: the codes differ, attention is right for either.
        CHECK(error_of_feeding(world, {turns.get(), &text, 200, 1, false, {}}) < 3e-5);
        CHECK(error_of_feeding(world, {once.get(), &text, 200, 1, false, {}}) < 3e-5);
      }
    }
  }
}

// Powers of two go through every scale, mean and product without a rounding, as long as no half becomes too small for
// it.
TEST_CASE("no branch forgets a scale: a factor in keys and its inverse in queries cancel, one in values comes out") {
  const World world(layers_of(2, layer_of(4, 2, 64)));
  Tokens text = text_of(world.layers(), 151, 9);
  for (std::vector<float>& rows : text.query) {
    for (float& number : rows) number = std::round(number * 16.0F) / 16.0F;
  }
  for (std::vector<float>& rows : text.key) {
    for (float& number : rows) number += 2.0F;
  }
  const auto profile = calibrate(world, text);
  Tokens shifted = text;
  for (std::vector<float>& rows : shifted.key) {
    for (float& number : rows) number /= 16.0F;
  }
  for (std::vector<float>& rows : shifted.query) {
    for (float& number : rows) number *= 16.0F;
  }
  Tokens louder = text;
  for (std::vector<float>& rows : louder.value) {
    for (float& number : rows) number *= 64.0F;
  }
  for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
    for (const int32_t dtype : {FOLDKV_F32, FOLDKV_F16, FOLDKV_BF16}) {
      CAPTURE(dtype);
      std::vector<Outputs> outputs;
      for (const Tokens* fed : {&text, &shifted, &louder}) {
        const auto sequence = make_sequence(world, chosen);
        (void)feed(world, {{sequence.get(), fed, 0, 150, false, {}}});
        outputs.push_back(feed_queries_as(dtype, world, {{sequence.get(), fed, 150, 1, false, {}}}));
      }
      CHECK(outputs[1].context == outputs[0].context);
      for (size_t layer = 0; layer < 2; ++layer) {
        for (size_t i = 0; i < outputs[0].context[layer].size(); ++i) {
          CHECK(outputs[2].context[layer][i] == 64.0F * outputs[0].context[layer][i]);
        }
      }
    }
  }
}

TEST_CASE("forty tokens leave the same codes however they came, and the bytes that the allocator counts") {
  const World world(layers_of(2, layer_of(4, 2, 16)));
  const Tokens text = text_of(world.layers(), 200, 10);
  const auto profile = calibrate(world, text);
  auto codec = sized<foldkv_codec_options>();
  codec.codec = FOLDKV_CODEC_KIVI;  // keys share scales over 32 tokens
  foldkv_profile* made = nullptr;
  REQUIRE(foldkv_profile_from_codec(world.model(), &codec, &made, nullptr) == FOLDKV_OK);
  const Owned<foldkv_profile> kivi(made);
  foldkv_sequence_options options = f32_options();
  options.sink_tokens = -1;
  options.recent_tokens = -1;
  for (const foldkv_profile* chosen : {profile.get(), kivi.get()}) {
    std::vector<std::vector<float>> held;
    for (const auto& [first, second] : {std::pair{40, 40}, {1, 1}, {7, 33}, {32, 8}}) {
      const auto sequence = make_sequence(world, chosen, options);
      const uint64_t before = world.stats().used_bytes;
      if (first == second) {
        (void)feed_in_chunks(world, sequence.get(), text, 0, 40, first);
      } else {
        (void)feed(world, {{sequence.get(), &text, 0, first, true, {}}});
        (void)feed(world, {{sequence.get(), &text, first, second, false, {}}});
      }
      CHECK(stats_of(sequence.get()).latent_tokens == (chosen == kivi.get() ? 32 : 40));
      CHECK(stats_of(sequence.get()).bytes == world.stats().used_bytes - before);
      held.push_back(held_numbers(world, sequence.get()));
    }
    for (const std::vector<float>& other : held) CHECK(other == held[0]);
  }
}

TEST_CASE("a neighbour a thousand times as loud changes no code") {
  const World world(layers_of(2, layer_of(4, 2, 64)));
  const Tokens text = text_of(world.layers(), 151, 11);
  Tokens loud = text_of(world.layers(), 151, 12);
  for (auto side : {&Tokens::key, &Tokens::value}) {
    for (std::vector<float>& rows : loud.*side) {
      for (float& number : rows) number *= 1000.0F;
    }
  }
  const auto profile = calibrate(world, text);
  const auto alone = make_sequence(world, profile.get());
  (void)feed(world, {{alone.get(), &text, 0, 150, false, {}}});
  const auto beside = make_sequence(world, profile.get());
  const auto neighbour = make_sequence(world, profile.get());
  (void)feed(world, {{neighbour.get(), &loud, 0, 150, false, {}}, {beside.get(), &text, 0, 150, false, {}}});
  CHECK(stats_of(beside.get()).latent_tokens == 82);
  CHECK(held_numbers(world, beside.get()) == held_numbers(world, alone.get()));
  CHECK(feed(world, {{beside.get(), &text, 150, 1, false, {}}}) ==
        feed(world, {{alone.get(), &text, 150, 1, false, {}}}));
}

// The instruction sets of this machine, the best one last.
std::vector<const char*> instruction_sets() {
  auto info = sized<foldkv_backend_info>();
  std::string best;
  for (int32_t index = 0; index < foldkv_backend_count(); ++index) {
    REQUIRE(foldkv_backend_get(index, &info, nullptr) == FOLDKV_OK);
    if (std::string(info.name) == "cpu") best = info.instruction_set;
  }
  std::vector<const char*> sets;
  for (const char* name : {"portable", "avx2", "avx512"}) {
    sets.push_back(name);
    if (best == name) break;
  }
  return sets;
}

TEST_CASE("every path reads the same bytes alike: plain, in tiles, in parts, on several threads") {
  const std::vector<LayerShape> layers = layers_of(2, layer_of(4, 2, 64));
  const Tokens text = text_of(layers, 1001, 13);
  std::vector<WorldChoice> choices(1);
  choices[0].backend = "reference";
  for (const char* instruction_set : instruction_sets()) {
    for (const int32_t threads : {1, 3}) choices.push_back({"cpu", threads, 256u << 20, instruction_set});
  }
  for (const WorldChoice& choice : choices) {
    const World world(layers, choice);
    CAPTURE(world.stats().instruction_set);
    const auto profile = calibrate(world, text);
    for (const int64_t count : {1, 31, 32, 33, 127, 128, 129, 1000}) {
      CAPTURE(count);
      const auto sequence = make_sequence(world, profile.get());
      (void)feed(world, {{sequence.get(), &text, 0, count, false, {}}});
      CHECK(error_of_feeding(world, {sequence.get(), &text, count, 1, false, {}}) < 1e-5);
    }
  }
}

}  // namespace
}  // namespace foldkv::test::field
