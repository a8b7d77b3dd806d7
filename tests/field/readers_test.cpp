#include <cmath>
#include <string>

#include "tests/field/field_world.h"

// Field reports, section A: one cache that is written and read in more than one way.
namespace foldkv::test::field {
namespace {

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
  // Its keys share scales over 32 tokens.
  const auto kivi = codec_profile(world, FOLDKV_CODEC_KIVI);
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
  for (const char* name : {"portable", "avx2", "avx512", "avx512vnni", "avx512amx"}) {
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
