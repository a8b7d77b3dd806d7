#include <string>

#include "tests/field/field_world.h"

// Field reports 46 and 50: options that work alone and not together. Every combination runs or is refused when the
// sequence is made.
namespace foldkv::test::field {
namespace {

std::vector<ProfileChoice> profile_choices() {
  std::vector<ProfileChoice> all;
  for (const int32_t bits : {16, 8, 4}) {
    for (const int32_t layers : {1, 2, 4}) {
      for (const int32_t rank : {0, 2}) {
        all.emplace_back();
        all.back().key_bits = all.back().value_bits = bits;
        all.back().layers_per_group = layers;
        all.back().correction_rank = rank;
      }
    }
  }
  return all;
}

foldkv_eviction eviction_of(const char* policy, bool compact) {
  foldkv_eviction eviction = policy_of(policy);
  if (eviction.scorer == FOLDKV_SCORER_NONE) return eviction;
  eviction.keep_ratio = 0.0;
  eviction.recent_share = 0.0;
  eviction.budget_tokens = 32;
  if (eviction.window_tokens > 0) eviction.window_tokens = 8;
  eviction.interval = 8;
  eviction.reindexed = compact ? 1 : 0;
  return eviction;
}

// Sixty tokens, the last twenty one by one.
void check_life(const World& world, const foldkv_profile* profile, const foldkv_eviction& eviction,
                const Tokens& text) {
  foldkv_sequence_options options = f32_options();
  options.recent_tokens = 8;
  options.fold_tokens = 8;
  options.eviction = &eviction;
  const auto sequence = make_sequence(world, profile, options);
  double worst = error_of_feeding(world, {sequence.get(), &text, 0, 40, false, {}});
  for (int64_t token = 40; token < 60; ++token) {
    worst = std::max(worst, error_of_feeding(world, {sequence.get(), &text, token, 1, false, {}}));
  }
  CHECK(worst < 3e-5);
  const foldkv_sequence_stats stats = stats_of(sequence.get());
  CHECK(stats.tokens == 60);
  const int64_t held = std::ssize(kept_positions(sequence.get(), 0, 0));
  if (eviction.scorer == FOLDKV_SCORER_NONE) {
    CHECK(held == 60);
  } else {
    CHECK(held <= 32 + 8 + 8);
    CHECK(stats.next_position == (eviction.reindexed == 1 ? held : 60));
  }
}

TEST_CASE("every policy with every placing of positions, width, group, correction and backend") {
  const std::vector<LayerShape> layers = layers_of(4, layer_of(4, 2, 8));
  for (const char* backend : {"cpu", "reference"}) {
    WorldChoice place;
    place.backend = backend;
    const World world(layers, place);
    const Tokens text = text_of(layers, 200, 1);
    for (const ProfileChoice& choice : profile_choices()) {
      CAPTURE(choice.key_bits);
      CAPTURE(choice.layers_per_group);
      CAPTURE(choice.correction_rank);
      const auto profile = calibrate(world, text, choice);
      for (const std::string policy : {"full", "streaming-llm", "h2o", "snapkv"}) {
        for (const bool compact : {false, true}) {
          CAPTURE(policy);
          CAPTURE(compact);
          check_life(world, profile.get(), eviction_of(policy.c_str(), compact), text);
        }
      }
    }
  }
}

TEST_CASE("what does not go together is refused with the sequence, says why, and takes no byte") {
  LayerShape windowed = layer_of(4, 2, 8);
  windowed.window = 20;
  const World world({layer_of(4, 2, 8), windowed});
  const auto refused = [&](const foldkv_profile* profile, const foldkv_eviction& eviction, const char* word) {
    foldkv_sequence_options options = f32_options();
    options.eviction = &eviction;
    foldkv_sequence* sequence = nullptr;
    foldkv_error error = sized<foldkv_error>();
    const uint64_t used = world.stats().used_bytes;
    CHECK(foldkv_sequence_create(world.runtime(), world.model(), profile, &options, &sequence, &error) ==
          FOLDKV_E_UNSUPPORTED);
    CHECK(sequence == nullptr);
    CHECK(std::string(error.message).find(word) != std::string::npos);
    CHECK(world.stats().used_bytes == used);
  };
  refused(nullptr, eviction_of("streaming-llm", true), "layer 1");
  const auto kivi = codec_profile(world, FOLDKV_CODEC_KIVI);
  refused(kivi.get(), eviction_of("snapkv", false), "share scales");
}

TEST_CASE("a backend or an instruction set that is not there is refused before any memory is taken") {
  const auto refused = [](const char* backend, const char* instruction_set, const char* word) {
    auto options = sized<foldkv_runtime_options>();
    options.backend = backend;
    options.instruction_set = instruction_set;
    options.budget_bytes = 1u << 20;
    foldkv_runtime* runtime = nullptr;
    foldkv_error error = sized<foldkv_error>();
    CHECK(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_E_UNSUPPORTED);
    CHECK(runtime == nullptr);
    CHECK(std::string(error.message).find(word) != std::string::npos);
  };
  refused("vulkan", nullptr, "vulkan");
  refused("cpu", "sve9", "sve9");
}

}  // namespace
}  // namespace foldkv::test::field
