#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section B, and the shapes that section A asks for: heads, widths, groups and lengths of every kind.
namespace foldkv::test::field {
namespace {

constexpr int64_t kText = 180;  // of calibrations

// A prompt and one more token, against attention over what the sequence holds.
double error_of(const World& world, const foldkv_profile* profile, const Tokens& text, int64_t prompt) {
  const auto sequence = make_sequence(world, profile);
  const double first = error_of_feeding(world, {sequence.get(), &text, 0, prompt, false, {}});
  return std::max(first, error_of_feeding(world, {sequence.get(), &text, prompt, 1, false, {}}));
}

TEST_CASE("every width of codes and scale group that a calibrator takes has its kernel, for every head size") {
  for (const int32_t head_size : {64, 80, 96, 128, 256}) {
    CAPTURE(head_size);
    const World world({layer_of(2, 1, head_size)});
    const Tokens text = text_of(world.layers(), kText, 1);
    for (const int32_t scale_group : {32, 64, 128}) {
      for (const int32_t bits : {2, 3, 4, 8}) {
        CAPTURE(scale_group);
        CAPTURE(bits);
        ProfileChoice choice;
        choice.layers_per_group = 1;
        choice.key_bits = choice.value_bits = bits;
        choice.scale_group = scale_group;
        CHECK(error_of(world, calibrate(world, text, choice).get(), text, 100) < 2e-5);
      }
    }
  }
}

TEST_CASE("widths of codes that nothing reads are refused where they are asked for") {
  const World world({layer_of(2, 1, 64)});
  const Tokens text = text_of(world.layers(), kText, 1);
  for (const int32_t bits : {-1, 1, 9, 12, 32}) {
    CAPTURE(bits);
    ProfileChoice choice;
    choice.layers_per_group = 1;
    choice.key_bits = bits;
    foldkv_error error = sized<foldkv_error>();
    CHECK(try_calibrate(world, text, choice, &error) == nullptr);
    CHECK(error.status == FOLDKV_E_ARGUMENT);
    CHECK(std::string(error.argument).find("key_bands[0]") != std::string::npos);
  }
}

TEST_CASE("head sizes that are no power of two, with and without rotation inside scale groups") {
  for (const int32_t head_size : {80, 96, 100, 192, 320}) {
    CAPTURE(head_size);
    const World world({layer_of(2, 1, head_size)});
    const Tokens text = text_of(world.layers(), kText, 2);
    for (const bool rotate : {false, true}) {
      ProfileChoice choice;
      choice.layers_per_group = 1;
      choice.rotate = rotate;
      CHECK(error_of(world, calibrate(world, text, choice).get(), text, 80) < 2e-5);
    }
  }
}

TEST_CASE("key widths that end inside a scale group") {
  for (const auto& [kv_heads, head_size] : {std::pair{4, 80}, {2, 100}}) {
    CAPTURE(head_size);
    const World world(layers_of(2, layer_of(4, kv_heads, head_size)));
    const Tokens text = text_of(world.layers(), kText, 3);
    for (const int32_t bits : {4, 8}) {
      ProfileChoice choice;
      choice.key_bits = choice.value_bits = bits;
      const auto profile = calibrate(world, text, choice);
      CHECK(error_of(world, profile.get(), text, 88) < 2e-5);  // 20 latents
      // What fills up the last scale group is in no scale: the last head comes back as near as its bits allow.
      const auto sequence = make_sequence(world, profile.get());
      (void)feed(world, {{sequence.get(), &text, 0, 150, false, {}}});
      const HeadTokens held = held_tokens(world, sequence.get(), 1, kv_heads - 1);
      std::vector<float> given;
      for (int64_t token = 0; token < 150; ++token) {
        const float* key = text.key[1].data() + (token * kv_heads + kv_heads - 1) * head_size;
        given.insert(given.end(), key, key + head_size);
      }
      CHECK(largest_error(held.keys, given) < (bits == 8 ? 0.02 : 0.25));
    }
  }
}

TEST_CASE("any number of query heads to a KV head, exact and compressed") {
  for (const int32_t ratio : {1, 2, 3, 5, 6, 7, 8, 9, 12, 16, 71}) {
    CAPTURE(ratio);
    const World world({layer_of(ratio, 1, 64)});
    const Tokens text = text_of(world.layers(), 120, 4);
    ProfileChoice choice;
    choice.layers_per_group = 1;
    CHECK(error_of(world, nullptr, text, 77) < 1e-5);
    CHECK(error_of(world, calibrate(world, text, choice).get(), text, 100) < 2e-5);
  }
  for (const auto& [query_heads, kv_heads] : {std::pair{24, 4}, {28, 4}, {40, 8}, {64, 4}}) {
    CAPTURE(query_heads);
    const World world({layer_of(query_heads, kv_heads, 16)});
    CHECK(error_of(world, nullptr, text_of(world.layers(), 50, 4), 40) < 1e-5);
  }
}

TEST_CASE("query heads that no number of KV heads divides are refused with the model") {
  foldkv_error error = sized<foldkv_error>();
  CHECK(make_model({layer_of(10, 4, 64)}, &error) == nullptr);
  CHECK(error.status == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument) == "layers[0].query_heads");
}

TEST_CASE("values of another head size than keys are refused by name") {
  const World world({layer_of(2, 2, 192)});
  auto feed = sized<foldkv_feed>();
  const auto sequence = make_sequence(world, nullptr);
  feed.sequence = sequence.get();
  feed.token_count = 3;
  foldkv_step* begun = nullptr;
  REQUIRE(foldkv_step_begin(world.runtime(), &feed, 1, nullptr, &begun, nullptr) == FOLDKV_OK);
  const Owned<foldkv_step> step(begun);
  std::vector<float> rows(3 * 2 * 192);
  foldkv_tensor tensor{rows.data(), FOLDKV_F32, FOLDKV_HOST, 3, 0, {3, 2, 192, 0}, {}};
  auto attend = sized<foldkv_attend>();
  attend.query = attend.key = attend.value = attend.output = tensor;
  attend.value.shape[2] = 128;
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_step_attend(step.get(), 0, &attend, &error) == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument) == "value.shape");
  attend.value.shape[2] = 192;
  CHECK(foldkv_step_attend(step.get(), 0, &attend, &error) == FOLDKV_OK);
}

TEST_CASE("heads times head size need not be the hidden size; nothing may be zero") {
  // 16 heads of 128 over 1,024 hidden numbers, 8 KV heads.
  const World world({layer_of(16, 8, 128)});
  CHECK(error_of(world, nullptr, text_of(world.layers(), 20, 5), 12) < 1e-5);
  const auto refused = [](const char* argument, const std::vector<LayerShape>& layers) {
    foldkv_error error = sized<foldkv_error>();
    CHECK(make_model(layers, &error) == nullptr);
    CHECK(error.status == FOLDKV_E_ARGUMENT);
    CHECK(std::string(error.argument) == argument);
  };
  LayerShape unrotated;
  refused("options.layer_count", {});
  unrotated.query_heads = 0;
  refused("layers[0].query_heads", {unrotated});
  unrotated = {};
  unrotated.kv_heads = 0;
  refused("layers[0].kv_heads", {unrotated});
  unrotated = {};
  unrotated.head_size = 0;
  refused("layers[0].head_size", {unrotated});
}

TEST_CASE("a group of more layers than there are takes those there are; explicit ones must exist") {
  const World world(layers_of(2, layer_of(2, 1, 16)));
  const Tokens text = text_of(world.layers(), kText, 5);
  ProfileChoice choice;
  choice.layers_per_group = 3;
  const auto profile = calibrate(world, text, choice);
  auto group = sized<foldkv_group_info>();
  REQUIRE(foldkv_profile_get_group(profile.get(), 0, 0, &group, nullptr) == FOLDKV_OK);
  CHECK(group.layer_count == 2);
  foldkv_error error = sized<foldkv_error>();
  choice.layers_per_group = -1;
  CHECK(try_calibrate(world, text, choice, &error) == nullptr);
  CHECK(std::string(error.argument) == "options.layers_per_group");
  choice.groups = {{0, 2}};
  CHECK(try_calibrate(world, text, choice, &error) == nullptr);
  CHECK(error.status == FOLDKV_E_ARGUMENT);
}

TEST_CASE("query heads read KV heads in blocks, exact, compressed and after an eviction") {
  const World world(layers_of(2, layer_of(6, 2, 64)));
  Tokens text = text_of(world.layers(), 201, 6);
  for (std::vector<float>& values : text.value) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 64 % 2 + 1);
  }
  const auto profile = calibrate(world, text);
  foldkv_eviction eviction = policy_of("snapkv");
  eviction.budget_tokens = 90;
  for (const bool evicts : {false, true}) {
    for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
      foldkv_sequence_options options = f32_options();
      if (evicts) options.eviction = &eviction;
      const auto sequence = make_sequence(world, chosen, options);
      (void)feed(world, {{sequence.get(), &text, 0, 200, false, {}}});
      const Outputs outputs = feed(world, {{sequence.get(), &text, 200, 1, false, {}}});
      for (const std::vector<float>& rows : outputs.context) {
        for (size_t i = 0; i < rows.size(); ++i) {
          CHECK(rows[i] == doctest::Approx(i / 64 < 3 ? 1.0 : 2.0).epsilon(1e-5));
        }
      }
    }
  }
}

// Every axis another number, so that none can stand for another: 3 layers, 10 query heads, 5 KV heads, 16 numbers.
TEST_CASE("what ends is the budget, at a token, and never another axis") {
  const std::vector<LayerShape> layers = layers_of(3, layer_of(10, 5, 16));
  const World roomy(layers);
  const Tokens text = text_of(layers, 61, 7);
  const foldkv_sequence_options options = f32_options();
  auto estimate = sized<foldkv_estimate>();
  REQUIRE(foldkv_sequence_estimate(roomy.runtime(), roomy.model(), nullptr, &options, nullptr, 0, 47, &estimate,
                                   nullptr) == FOLDKV_OK);
  WorldChoice choice;
  choice.budget = estimate.shared_bytes + estimate.peak_bytes;
  const World world(layers, choice);
  const auto sequence = make_sequence(world, nullptr);
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  int64_t fed = 0;
  while (fed < 61 && try_feed(world, {{sequence.get(), &text, fed, 1, false, {}}}, &outputs, &error) == FOLDKV_OK)
    ++fed;
  // 47 tokens lie in three pages of 16.
  CHECK(fed == 48);
  CHECK(error.status == FOLDKV_E_BUDGET);
  const std::vector<float> held = held_numbers(world, sequence.get());
  const uint64_t used = world.stats().used_bytes;
  CHECK(try_feed(world, {{sequence.get(), &text, 48, 11, false, {}}}, &outputs, &error) == FOLDKV_E_BUDGET);
  CHECK(stats_of(sequence.get()).tokens == 48);
  CHECK(held_numbers(world, sequence.get()) == held);
  CHECK(world.stats().used_bytes == used);
}

TEST_CASE("local and global layers of different head sizes, in groups of one kind") {
  LayerShape local = layer_of(4, 2, 64);
  local.window = 40;
  const LayerShape global = layer_of(4, 1, 128);
  const World world({local, local, global, local, local, global});
  const Tokens text = text_of(world.layers(), kText, 8);
  ProfileChoice choice;
  choice.groups = {{0, 1}, {2, 5}, {3, 4}};
  CHECK(error_of(world, calibrate(world, text, choice).get(), text, 140) < 2e-5);
  // By default layers with a window stay exact, and those without find each other.
  choice.groups = {};
  const auto profile = calibrate(world, text, choice);
  auto info = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(profile.get(), &info, nullptr) == FOLDKV_OK);
  CHECK(info.group_count == 1);
  CHECK(error_of(world, profile.get(), text, 140) < 2e-5);
  choice.groups = {{0, 1}, {2, 4}};
  foldkv_error error = sized<foldkv_error>();
  CHECK(try_calibrate(world, text, choice, &error) == nullptr);
  CHECK(error.status == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument).find("groups[1]") != std::string::npos);
  CHECK(std::string(error.message).find('4') != std::string::npos);
}

TEST_CASE("large heads run where the runtime was opened, in every width, and it says where that is") {
  for (const char* backend : {"cpu", "reference"}) {
    WorldChoice place;
    place.backend = backend;
    for (const int32_t head_size : {192, 256, 512}) {
      CAPTURE(head_size);
      const World world({layer_of(2, 1, head_size)}, place);
      const Tokens text = text_of(world.layers(), 100, 9);
      for (const int32_t bits : {4, 8, 16}) {
        ProfileChoice choice;
        choice.layers_per_group = 1;
        choice.latent_width = 64;
        choice.key_bits = choice.value_bits = bits;
        CHECK(error_of(world, calibrate(world, text, choice).get(), text, 90) < 2e-5);
        CHECK(std::string(world.stats().backend) == backend);
        CHECK(std::string(world.stats().instruction_set).size() > 0);
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test::field
