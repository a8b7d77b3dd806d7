#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/field/field_world.h"
#include "tests/support/random.h"

// Field reports, section H, and 72: bytes that were foretold, bytes that are taken, bytes that come back.
namespace foldkv::test::field {
namespace {

struct Life {
  foldkv_sequence_options options = f32_options();
  int64_t prompt = 0;
  int64_t generated = 0;
};

Life random_life(Random& random, bool generates) {
  Life life;
  life.options.dtype = static_cast<int32_t>(random.between(FOLDKV_F32, FOLDKV_BF16));
  life.options.sink_tokens = static_cast<int32_t>(random.between(-1, 8));
  life.options.recent_tokens = static_cast<int32_t>(random.between(-1, 40));
  life.options.fold_tokens = static_cast<int32_t>(random.between(-1, 30));
  life.prompt = random.between(1, 300);
  life.generated = generates ? random.between(1, 60) : 0;
  return life;
}

foldkv_estimate estimate_of(const World& world, const foldkv_profile* profile, const Life& life) {
  auto estimate = sized<foldkv_estimate>();
  REQUIRE(foldkv_sequence_estimate(world.runtime(), world.model(), profile, &life.options, nullptr, life.prompt,
                                   life.generated, &estimate, nullptr) == FOLDKV_OK);
  return estimate;
}

struct RandomWorld {
  std::vector<LayerShape> layers;
  ProfileChoice choice;
};
RandomWorld random_world(Random& random) {
  const auto kv_heads = static_cast<int32_t>(random.between(1, 3));
  RandomWorld world;
  world.layers = layers_of(random.between(1, 5), layer_of(kv_heads * static_cast<int32_t>(random.between(1, 3)),
                                                          kv_heads, static_cast<int32_t>(2 * random.between(2, 24))));
  world.choice.layers_per_group = static_cast<int32_t>(random.between(1, 4));
  world.choice.key_bits = static_cast<int32_t>(random.between(2, 8));
  world.choice.value_bits = static_cast<int32_t>(random.between(2, 8));
  world.choice.scale_group = static_cast<int32_t>(random.between(1, 4) * 32);
  world.choice.correction_rank = static_cast<int32_t>(random.between(0, 3));
  return world;
}

TEST_CASE("two hundred random sequences take what was estimated, to the byte") {
  Random random(72);
  for (int round = 0; round < 20; ++round) {
    const RandomWorld shape = random_world(random);
    const World world(shape.layers, {"cpu", 1});
    const Tokens text = text_of(shape.layers, 360, static_cast<uint64_t>(round));
    const auto calibrated = calibrate(world, text, shape.choice);
    for (int time = 0; time < 10; ++time) {
      const foldkv_profile* profile = time % 3 == 0 ? nullptr : calibrated.get();
      const Life life = random_life(random, true);
      CAPTURE(life.prompt);
      CAPTURE(life.generated);
      const foldkv_estimate estimate = estimate_of(world, profile, life);
      const uint64_t before = world.stats().used_bytes;
      const auto sequence = make_sequence(world, profile, life.options);
      CHECK(world.stats().used_bytes - before == estimate.shared_bytes);
      (void)feed(world, {{sequence.get(), &text, 0, life.prompt, false, {}}});
      (void)generate(world, sequence.get(), text, life.prompt, life.generated);
      CHECK(stats_of(sequence.get()).bytes == estimate.sequence_bytes);
      CHECK(world.stats().used_bytes - before == estimate.shared_bytes + estimate.sequence_bytes);
    }
  }
}

TEST_CASE("a budget of the estimate admits a prompt, and one block less refuses it without a trace") {
  Random random(101);
  for (int round = 0; round < 20; ++round) {
    const RandomWorld shape = random_world(random);
    const World roomy(shape.layers, {"cpu", 1});
    const Tokens text = text_of(shape.layers, 300, static_cast<uint64_t>(round));
    const auto calibrated = calibrate(roomy, text, shape.choice);
    const foldkv_profile* profile = round % 3 == 0 ? nullptr : calibrated.get();
    const Life life = random_life(random, false);
    CAPTURE(life.prompt);
    const foldkv_estimate estimate = estimate_of(roomy, profile, life);
    for (const uint64_t missing : {0, 64}) {
      const World world(shape.layers, {"cpu", 1, estimate.shared_bytes + estimate.peak_bytes - missing});
      const auto sequence = make_sequence(world, profile, life.options);
      const uint64_t used = world.stats().used_bytes;
      Outputs outputs;
      foldkv_error error = sized<foldkv_error>();
      const foldkv_status status =
          try_feed(world, {{sequence.get(), &text, 0, life.prompt, false, {}}}, &outputs, &error);
      CHECK(status == (missing == 0 ? FOLDKV_OK : FOLDKV_E_BUDGET));
      if (missing > 0) CHECK(world.stats().used_bytes == used);
      CHECK(world.stats().peak_bytes <= world.stats().budget_bytes);
    }
  }
}

// Llama 3.1 8B with 131,072 tokens: 32 layers, 8 KV heads of 128. Codes of 4 bits, one scale for a token and head.
TEST_CASE("a long prompt of a known model, counted by hand") {
  const std::vector<LayerShape> layers = layers_of(32, layer_of(32, 8, 128));
  const World world(layers);
  const auto profile = codec_profile(world, FOLDKV_CODEC_INTEGER, 4);
  Life life;
  life.options.dtype = FOLDKV_F16;
  life.prompt = 131072;
  const foldkv_estimate estimate = estimate_of(world, profile.get(), life);
  const uint64_t token = 32 * 2 * 8 * (128 / 2 + 2);
  const uint64_t latent = 131008 * token;                      // 131,004 tokens in whole pages of 64
  const uint64_t exact = 80 * uint64_t{32 * 2 * 8 * 128 * 2};  // 68 tokens in 5 pages of 16
  const uint64_t counted = latent + exact;
  CHECK(estimate.sequence_bytes >= counted);
  CHECK(estimate.sequence_bytes - counted < counted / 100);  // positions
  const double full = 131072.0 * 32 * 2 * 8 * 128 * 2;
  CHECK(full / static_cast<double>(estimate.sequence_bytes) == doctest::Approx(256.0 / 66.0).epsilon(0.01));
}

TEST_CASE("a prompt that is compressed while it streams never stands beside its full cache") {
  const World world(layers_of(4, layer_of(2, 2, 32)));
  const Tokens text = text_of(world.layers(), 8192, 1);
  ProfileChoice choice;
  choice.layers_per_group = 4;
  const auto profile = calibrate(world, text_of(world.layers(), 300, 2), choice);
  foldkv_sequence_options options = f32_options();
  options.dtype = FOLDKV_F16;
  const auto sequence = make_sequence(world, profile.get(), options);
  const uint64_t before = world.stats().used_bytes;
  for (int64_t token = 0; token < 8192; token += 256) {
    (void)feed(world, {{sequence.get(), &text, token, 256, false, {}}});
  }
  const foldkv_sequence_stats stats = stats_of(sequence.get());
  const uint64_t full = stats.full_cache_bytes;
  CHECK(full == 8192 * 4 * 2 * 64 * 2);
  CHECK(world.stats().peak_bytes - before < full * 40 / 100);
  CHECK(stats.bytes < full / 8);
  // Nothing that the ledger does not name stays behind: no second copy, no scratch.
  CHECK(world.stats().used_bytes - before == stats.bytes);
  CHECK(world.stats().ledger.scratch == 0);
}

int64_t open_files() {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

int64_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST_CASE("two hundred lives leave nothing behind: no address space, no file, no byte in the ledger") {
  const std::vector<LayerShape> layers = layers_of(2, layer_of(2, 1, 16));
  const Tokens text = text_of(layers, 1000, 3);
  const auto live = [&](int32_t threads) {
    const World world(layers, {"cpu", threads, 64u << 20});
    const auto profile = calibrate(world, text);
    {
      const auto sequence = make_sequence(world, profile.get());
      (void)feed_in_chunks(world, sequence.get(), text, 0, 1000, 200);
    }
    CHECK(world.stats().used_bytes == 0);
    CHECK(world.stats().sequence_count == 0);
  };
  for (int life = 0; life < 5; ++life) live(2);
  const int64_t files = open_files();
  const int64_t mapped = mapped_bytes();
  for (int life = 0; life < 200; ++life) live(life % 10 == 0 ? 2 : 1);
  CHECK(open_files() == files);
  CHECK(mapped_bytes() - mapped < 10 << 20);
}

}  // namespace
}  // namespace foldkv::test::field
