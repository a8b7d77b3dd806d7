#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section D: what a query sees, and what a softmax makes of it.
namespace foldkv::test::field {
namespace {

TEST_CASE("scores far beyond the cap, near it, and without one") {
  for (const double cap : {0.0, 5.0, 50.0}) {
    CAPTURE(cap);
    LayerShape layer = layer_of(4, 2, 32);
    layer.soft_cap = cap;
    for (const char* backend : {"cpu", "reference"}) {
      WorldChoice choice;
      choice.backend = backend;
      const World world(layers_of(2, layer), choice);
      Tokens text = text_of(world.layers(), 181, 1);
      for (std::vector<float>& rows : text.query) {
        for (float& number : rows) number *= 60.0F;  // scores of some hundreds
      }
      const auto profile = calibrate(world, text);
      for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
        const auto sequence = make_sequence(world, chosen);
        CHECK(error_of_feeding(world, {sequence.get(), &text, 0, 180, false, {}}) < 1e-4);
        CHECK(error_of_feeding(world, {sequence.get(), &text, 180, 1, false, {}}) < 1e-4);
      }
    }
  }
}

TEST_CASE("a cap that is none is refused") {
  for (const double cap : {-1.0, -50.0, std::nan(""), static_cast<double>(INFINITY)}) {
    LayerShape layer = layer_of(2, 1, 16);
    layer.soft_cap = cap;
    foldkv_error error = sized<foldkv_error>();
    CHECK(make_model({layer}, &error) == nullptr);
    CHECK(std::string(error.argument) == "layers[0].soft_cap");
  }
}

TEST_CASE("a window, exact sinks and 4 bits together") {
  LayerShape layer = layer_of(4, 2, 64);
  layer.window = 128;
  for (const char* backend : {"cpu", "reference"}) {
    WorldChoice choice;
    choice.backend = backend;
    const World world(layers_of(2, layer), choice);
    const Tokens text = text_of(world.layers(), 310, 2);
    ProfileChoice four_bits;
    four_bits.groups = {{0, 1}};
    const auto profile = calibrate(world, text, four_bits);
    const auto sequence = make_sequence(world, profile.get());
    (void)feed(world, {{sequence.get(), &text, 0, 300, false, {}}});
    CHECK(stats_of(sequence.get()).latent_tokens == 232);
    for (int64_t token = 300; token < 310; ++token) {
      CHECK(error_of_feeding(world, {sequence.get(), &text, token, 1, false, {}}) < 2e-5);
    }
  }
}

// Values that name their token, so that an output is the row of weights.
Tokens one_hot_text(const LayerShape& layer, int64_t count) {
  Tokens text = text_of({layer}, count, 3);
  std::fill(text.value[0].begin(), text.value[0].end(), 0.0F);
  for (int64_t token = 0; token < count; ++token) {
    text.value[0][static_cast<size_t>(token * layer.head_size + token)] = 1.0F;
  }
  return text;
}

TEST_CASE("a window of eight is a token and the seven before it, at every length and in chunks over its edge") {
  LayerShape layer = layer_of(1, 1, 32);
  layer.window = 8;
  const World world({layer});
  const Tokens text = one_hot_text(layer, 20);
  const auto check_rows = [](const Outputs& outputs, int64_t first, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t token = 0; token < 20; ++token) {
        const bool seen = token <= first + row && token > first + row - 8;
        CHECK((outputs.context[0][static_cast<size_t>(row * 32 + token)] > 0.0F) == seen);
      }
    }
  };
  for (int64_t count = 1; count <= 20; ++count) {
    const auto sequence = make_sequence(world, nullptr);
    check_rows(feed(world, {{sequence.get(), &text, 0, count, false, {}}}), 0, count);
  }
  for (const int64_t chunk : {1, 3, 5, 8, 9}) {
    const auto sequence = make_sequence(world, nullptr);
    check_rows(feed_in_chunks(world, sequence.get(), text, 0, 20, chunk), 0, 20);
  }
}

// Pages of 16 exact and 64 latent tokens, tiles of 64, a window of 24, scale groups of 32 tokens (KIVI's).
TEST_CASE("one token below, at and past every size inside") {
  LayerShape windowed = layer_of(2, 1, 32);
  windowed.window = 24;
  const World world({layer_of(2, 1, 32), windowed, layer_of(2, 1, 32)});
  const Tokens text = text_of(world.layers(), 600, 4);
  const auto channels = codec_profile(world, FOLDKV_CODEC_KIVI);
  const auto latents = calibrate(world, text);
  foldkv_sequence_options options = f32_options();
  options.recent_tokens = 8;
  for (const foldkv_profile* profile :
       std::initializer_list<const foldkv_profile*>{nullptr, latents.get(), channels.get()}) {
    for (const int64_t size : {16, 24, 32, 64, 128}) {
      for (const int64_t count : {size - 1, size, size + 1, 2 * size + 1}) {
        CAPTURE(count);
        const auto sequence = make_sequence(world, profile, options);
        CHECK(error_of_feeding(world, {sequence.get(), &text, 0, count, false, {}}) < 2e-5);
        CHECK(error_of_feeding(world, {sequence.get(), &text, count, 1, false, {}}) < 2e-5);
      }
    }
  }
}

TEST_CASE("after a call that failed the next sequence is as good as the first") {
  WorldChoice choice;
  choice.budget = 4u << 20;
  const World world(layers_of(2, layer_of(2, 1, 32)), choice);
  const Tokens text = text_of(world.layers(), 9000, 5);
  const auto profile = calibrate(world, text);
  for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
    const auto fresh = make_sequence(world, chosen);
    const Outputs expected = feed(world, {{fresh.get(), &text, 0, 100, false, {}}});
    const auto failing = make_sequence(world, chosen);
    Outputs outputs;
    foldkv_error error = sized<foldkv_error>();
    CHECK(try_feed(world, {{failing.get(), &text, 0, 9000, false, {}}}, &outputs, &error) == FOLDKV_E_BUDGET);
    CHECK(feed(world, {{failing.get(), &text, 0, 100, false, {}}}) == expected);
    const auto later = make_sequence(world, chosen);
    CHECK(feed(world, {{later.get(), &text, 0, 100, false, {}}}) == expected);
    CHECK(error_of_feeding(world, {later.get(), &text, 100, 3, false, {}}) < 2e-5);
  }
}

TEST_CASE("no row and no head is off, whatever the length and the number of queries of a call") {
  LayerShape layer = layer_of(4, 2, 256);
  layer.window = 64;
  const World world({layer});
  const Tokens text = text_of(world.layers(), 208, 6);
  const std::vector<double> expected = true_context(layer, text, 0, 0, 208);
  ProfileChoice eight_bits;
  eight_bits.groups = {{0}};
  eight_bits.key_bits = eight_bits.value_bits = 8;
  const auto profile = calibrate(world, text, eight_bits);
  for (const int64_t queries : {1, 2, 4, 8}) {
    CAPTURE(queries);
    const auto exact = make_sequence(world, nullptr);
    CHECK(largest_error(feed_in_chunks(world, exact.get(), text, 0, 208, queries).context[0], expected) < 1e-5);
    const auto compressed = make_sequence(world, profile.get());
    (void)feed(world, {{compressed.get(), &text, 0, 60, false, {}}});
    double worst = 0.0;
    for (int64_t token = 60; token + queries <= 200; token += queries) {
      worst = std::max(worst, error_of_feeding(world, {compressed.get(), &text, token, queries, false, {}}));
    }
    CHECK(worst < 2e-5);
  }
}

TEST_CASE("a query always sees itself; a call without tokens is refused, not answered with something") {
  LayerShape layer = layer_of(2, 1, 16);
  layer.window = 1;
  const World world({layer});
  const Tokens text = text_of(world.layers(), 38, 7);
  const auto empty = make_sequence(world, nullptr);
  const auto one = make_sequence(world, nullptr);
  const auto many = make_sequence(world, nullptr);
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  const std::vector<Piece> pieces = {{empty.get(), &text, 0, 0, false, {}},
                                     {one.get(), &text, 0, 1, false, {}},
                                     {many.get(), &text, 1, 37, false, {}}};
  CHECK(try_feed(world, pieces, &outputs, &error) == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument) == "feeds[0].token_count");
  CHECK(stats_of(many.get()).tokens == 0);
  // With the narrowest window every output is the token's own value, of every row.
  const Outputs rest = feed(world, {pieces[1], pieces[2]});
  for (size_t row = 0; row < 38; ++row) {
    for (size_t i = 0; i < 32; ++i) CHECK(rest.context[0][row * 32 + i] == text.value[0][row * 16 + i % 16]);
  }
}

TEST_CASE("halves hold keys and values, and nothing is summed in them") {
  LayerShape layer = layer_of(1, 1, 128);
  layer.attention_scale = 1.0;
  layer.frequencies = {};
  const World world({layer});
  foldkv_sequence_options halves = f32_options();
  halves.dtype = FOLDKV_F16;
  Tokens text = text_of(world.layers(), 40, 8);
  // Products of 300 * 300 * 128 = 11,520,000, and one key that is longer yet.
  for (auto side : {&Tokens::query, &Tokens::key}) std::fill((text.*side)[0].begin(), (text.*side)[0].end(), 300.0F);
  for (size_t i = 0; i < 128; ++i) text.key[0][20 * 128 + i] = 301.0F;
  const auto large = make_sequence(world, nullptr, halves);
  const Outputs outputs = feed(world, {{large.get(), &text, 0, 40, false, {}}});
  for (size_t row = 20; row < 40; ++row) {
    for (size_t i = 0; i < 128; ++i) {
      CHECK(outputs.context[0][row * 128 + i] == doctest::Approx(text.value[0][20 * 128 + i]).epsilon(2e-3));
    }
    CHECK(outputs.log_sum_exp[0][row] == doctest::Approx(300.0 * 301.0 * 128.0).epsilon(1e-5));
  }
}

TEST_CASE("thousands of large values average to themselves") {
  LayerShape layer = layer_of(1, 1, 8);
  layer.frequencies = {};
  const World world({layer});
  foldkv_sequence_options halves = f32_options();
  halves.dtype = FOLDKV_F16;
  Tokens text = text_of(world.layers(), 4097, 9);
  std::fill(text.key[0].begin(), text.key[0].end(), 1.0F);
  std::fill(text.value[0].begin(), text.value[0].end(), 60000.0F);
  const auto sequence = make_sequence(world, nullptr, halves);
  (void)feed(world, {{sequence.get(), &text, 0, 4096, false, {}}});
  const Outputs outputs = feed(world, {{sequence.get(), &text, 4096, 1, false, {}}});
  for (const float number : outputs.context[0]) CHECK(number == doctest::Approx(60000.0).epsilon(1e-3));
}

TEST_CASE("latents of numbers beyond a half come back as such, and a mean beyond it is an error") {
  const World world({layer_of(1, 1, 32)});
  Tokens text = text_of(world.layers(), 180, 10);
  for (float& number : text.key[0]) number *= 30000.0F;
  ProfileChoice choice;
  choice.layers_per_group = 1;
  choice.key_bits = 8;
  const auto profile = calibrate(world, text, choice);
  const auto sequence = make_sequence(world, profile.get());
  (void)feed(world, {{sequence.get(), &text, 0, 170, false, {}}});
  const HeadTokens held = held_tokens(world, sequence.get(), 0, 0);
  CHECK(*std::max_element(held.keys.begin(), held.keys.end()) > 65504.0F);
  CHECK(largest_error(held.keys, std::vector<float>(text.key[0].begin(), text.key[0].begin() + 170 * 32)) < 0.02);
  for (float& number : text.key[0]) number += 200000.0F;
  const auto shifted = make_sequence(world, profile.get());
  const uint64_t used = world.stats().used_bytes;
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  CHECK(try_feed(world, {{shifted.get(), &text, 0, 170, false, {}}}, &outputs, &error) == FOLDKV_E_NUMERIC);
  CHECK(stats_of(shifted.get()).tokens == 0);
  CHECK(world.stats().used_bytes == used);
}

}  // namespace
}  // namespace foldkv::test::field
