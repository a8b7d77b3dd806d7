#include <cstring>

#include "abi/handles.h"
#include "tests/field/field_world.h"

// Field report 54, and the other side of lifetimes: what a cache is given has been somebody else's. No C function
// reaches free memory, so this one test looks behind the handles.
namespace foldkv::test::field {
namespace {

// Fills all that is free with bytes of 0xff: NaN in every number format, all bits of every code.
void poison_free_memory(const World& world) {
  foldkv::Arena& arena = world.runtime()->object->arena();
  std::vector<std::pair<std::byte*, int64_t>> taken;
  for (const int64_t size : {65536, 4096, 64}) {
    while (true) {
      const auto block = arena.allocate(foldkv::Role::kScratch, size);
      if (!block.ok()) break;
      std::memset(*block, 0xff, static_cast<size_t>(size));
      taken.emplace_back(*block, size);
    }
  }
  CHECK(arena.stats().ledger.total() == arena.stats().budget);
  for (const auto& [block, size] : taken) arena.release(foldkv::Role::kScratch, block, size);
  const auto again = arena.allocate(foldkv::Role::kScratch, 64);
  REQUIRE(again.ok());
  CHECK((*again)[63] == std::byte{0xff});  // it was not given back, and comes as it was left
  arena.release(foldkv::Role::kScratch, *again, 64);
}

struct Chosen {
  const foldkv_profile* profile = nullptr;
  foldkv_sequence_options options;
};

// A prompt in two pieces, tokens that are folded and maybe evicted, a fork, a second sequence in the first one's place.
std::vector<Outputs> lives(const World& world, const Chosen& chosen, const Tokens& text, bool poisoned) {
  std::vector<Outputs> all;
  const auto step = [&](foldkv_sequence* sequence, int64_t first, int64_t count, bool continues = false) {
    if (poisoned) poison_free_memory(world);
    all.push_back(feed(world, {{sequence, &text, first, count, continues, {}}}));
  };
  auto original = make_sequence(world, chosen.profile, chosen.options);
  step(original.get(), 0, 50, true);
  step(original.get(), 50, 51);
  for (int64_t token = 101; token < 130; ++token) step(original.get(), token, 1);
  if (poisoned) poison_free_memory(world);
  foldkv_sequence* made = nullptr;
  REQUIRE(foldkv_sequence_fork(original.get(), &made, nullptr) == FOLDKV_OK);
  const Owned<foldkv_sequence> fork(made);
  original.reset();
  step(fork.get(), 130, 3);
  const auto second = make_sequence(world, chosen.profile, chosen.options);
  step(second.get(), 0, 130);
  step(second.get(), 130, 1);
  return all;
}

TEST_CASE("what free memory holds never reaches an output") {
  const std::vector<LayerShape> layers = layers_of(4, layer_of(4, 2, 16));
  // Below a MiB the arena gives no memory back, which would come again as zeros.
  for (const char* backend : {"cpu", "reference"}) {
    const WorldChoice choice{backend, 2, 1000u << 10, nullptr};
    const World clean(layers, choice);
    const World dirty(layers, choice);
    const Tokens text = text_of(layers, 200, 1);
    ProfileChoice corrected;
    corrected.correction_rank = 2;
    corrected.key_bits = 3;
    const auto profile = calibrate(clean, text, corrected);
    foldkv_eviction eviction = policy_of("h2o");
    eviction.keep_ratio = 0.0;
    eviction.recent_share = 0.0;
    eviction.budget_tokens = 60;
    Chosen chosen{nullptr, f32_options()};
    chosen.options.recent_tokens = 16;
    chosen.options.fold_tokens = 16;
    const auto check = [&](const foldkv_profile* each, bool evicts) {
      CAPTURE(evicts);
      chosen.profile = each;
      chosen.options.eviction = evicts ? &eviction : nullptr;
      // NaN is equal to nothing, so that this says finite as well.
      CHECK(lives(dirty, chosen, text, true) == lives(clean, chosen, text, false));
    };
    for (const bool evicts : {false, true}) {
      check(nullptr, evicts);
      check(profile.get(), evicts);
    }
    for (const int32_t codec : {FOLDKV_CODEC_INTEGER, FOLDKV_CODEC_KIVI, FOLDKV_CODEC_XKV, FOLDKV_CODEC_MINICACHE}) {
      CAPTURE(codec);
      check(codec_profile(clean, codec).get(), false);
    }
  }
}

}  // namespace
}  // namespace foldkv::test::field
