#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/field/field_world.h"
#include "tests/field/plain_eviction.h"

// Field reports, section E: how many tokens stay, which ones, and when.
namespace foldkv::test::field {
namespace {

foldkv_sequence_options evicting(const foldkv_eviction& eviction) {
  foldkv_sequence_options options = f32_options();
  options.eviction = &eviction;
  return options;
}

// That many tokens of each head, and nothing that a share of the prompt decides.
foldkv_eviction keeping(const char* name, int64_t tokens) {
  foldkv_eviction eviction = policy_of(name);
  eviction.keep_ratio = 0.0;
  eviction.ratio_of_unprotected = 0;
  eviction.recent_share = 0.0;
  eviction.budget_tokens = tokens;
  return eviction;
}

std::vector<int64_t> all_of(int64_t count) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// One token that is kept always, or the share of recent ones that the policy's authors keep.
foldkv_eviction keeping_share(const char* name, double keep) {
  foldkv_eviction eviction = policy_of(name);
  eviction.budget_tokens = 0;
  eviction.keep_ratio = keep;
  eviction.ratio_of_unprotected = 0;
  eviction.sink_tokens = 0;
  if (eviction.window_tokens > 0) eviction.window_tokens = 1;
  return eviction;
}

void check_share(const World& world, const Tokens& text, const foldkv_eviction& eviction, int64_t count) {
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  (void)feed(world, {{sequence.get(), &text, 0, count, false, {}}});
  int64_t sum = 0;
  for (int32_t layer = 0; layer < std::ssize(world.layers()); ++layer) {
    const std::vector<int64_t> kept = kept_positions(sequence.get(), layer, 0);
    REQUIRE(kept.size() >= 1);
    if (eviction.window_tokens > 0) CHECK(kept.back() == count - 1);
    sum += std::ssize(kept);
  }
  const auto whole = [count](double share) {
    return static_cast<int64_t>(std::floor(share * static_cast<double>(count) + 1e-9));
  };
  CHECK(sum ==
        std::ssize(world.layers()) * std::max({int64_t{1}, whole(eviction.keep_ratio), whole(eviction.recent_share)}));
  // The next token finds something to look at.
  const Outputs outputs = feed(world, {{sequence.get(), &text, count, 1, false, {}}});
  for (const float number : outputs.context.back()) CHECK(std::isfinite(number));
}

TEST_CASE("a share that rounds to nothing keeps what is kept always, and a token at least") {
  for (const int64_t layer_count : {1, 2, 32}) {
    const World world(layers_of(layer_count, layer_of(1, 1, 8)));
    const Tokens text = text_of(world.layers(), 21, 1);
    for (const std::string name : {"snapkv", "h2o", "bellowskv-evict", "pyramidkv"}) {
      for (const double keep : {0.5, 0.1, 0.04, 0.001}) {
        CAPTURE(name);
        CAPTURE(keep);
        const foldkv_eviction eviction = keeping_share(name.c_str(), keep);
        for (int64_t count = 1; count <= 20; ++count) check_share(world, text, eviction, count);
      }
    }
  }
}

TEST_CASE("prompts around the length of what is kept always") {
  const std::vector<LayerShape> layers = layers_of(2, layer_of(4, 2, 16));
  const World world(layers);
  const Tokens text = text_of(layers, 100, 2);
  const auto profile = calibrate(world, text_of(layers, 200, 3));
  for (const int64_t count : {1, 3, 4, 5, 12, 13, 14, 64, 67, 68, 69, 70, 81, 83, 84, 100}) {
    for (const double keep : {0.0, 0.5, 1.0}) {
      CAPTURE(count);
      CAPTURE(keep);
      foldkv_eviction eviction = policy_of("bellowskv-evict");
      eviction.layers_per_group = 2;
      eviction.keep_ratio = keep == 0.0 ? 1e-9 : keep;  // 0: no ratio
      const auto others = static_cast<int64_t>(keep * static_cast<double>(std::max<int64_t>(0, count - 68)));
      const std::vector<int64_t> expected = kept_plainly(window_sums(layers, text, count, 64, 0, 1), {}, others);
      if (count <= 68) CHECK(expected == all_of(count));
      for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
        CAPTURE(chosen != nullptr);
        const auto sequence = make_sequence(world, chosen, evicting(eviction));
        (void)feed(world, {{sequence.get(), &text, 0, count, false, {}}});
        // A group decides when its first run becomes latents, which has 16 tokens at least.
        const bool waits = chosen != nullptr && count - 68 < 16;
        for (const int32_t layer : {0, 1}) {
          for (const int32_t head : {0, 1}) {
            CHECK(kept_positions(sequence.get(), layer, head) == (waits ? all_of(count) : expected));
          }
        }
      }
    }
  }
}

TEST_CASE("the budget is that of the sequence, and chunks choose what the whole prompt chooses") {
  const std::vector<LayerShape> layers = layers_of(2, layer_of(2, 1, 16));
  const World world(layers);
  const Tokens text = text_of(layers, 1000, 4);
  foldkv_eviction eviction = keeping("bellowskv-evict", 128);
  eviction.layers_per_group = 2;
  const std::vector<int64_t> expected = kept_plainly(window_sums(layers, text, 1000, 64, 0, 1), {}, 60);
  for (const int64_t chunk : {1000, 512, 100, 1}) {
    CAPTURE(chunk);
    const auto sequence = make_sequence(world, nullptr, evicting(eviction));
    (void)feed_in_chunks(world, sequence.get(), text, 0, 1000, chunk);
    CHECK(kept_positions(sequence.get(), 0, 0) == expected);
    CHECK(kept_positions(sequence.get(), 1, 0) == expected);
  }
}

TEST_CASE("scores are summed over all heads and layers of a group, and rows stay those of KV heads") {
  uint64_t bytes[2] = {};
  for (const int32_t query_heads : {8, 2}) {
    const std::vector<LayerShape> layers = layers_of(4, layer_of(query_heads, 2, 64));
    const World world(layers);
    const Tokens text = text_of(layers, 200, 5);
    ProfileChoice four_layers;
    four_layers.layers_per_group = 4;
    const auto profile = calibrate(world, text, four_layers);
    foldkv_eviction eviction = policy_of("bellowskv-evict");
    const auto sequence = make_sequence(world, profile.get(), evicting(eviction));
    (void)feed(world, {{sequence.get(), &text, 0, 200, false, {}}});
    const std::vector<int64_t> expected = kept_plainly(window_sums(layers, text, 200, 64, 0, 3), {}, 66);
    for (const int32_t layer : {0, 3}) CHECK(kept_positions(sequence.get(), layer, 1) == expected);
    bytes[query_heads == 8 ? 0 : 1] = stats_of(sequence.get()).bytes;
  }
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("what was achieved is counted, not multiplied") {
  const World world(layers_of(4, layer_of(4, 2, 64)));
  const Tokens text = text_of(world.layers(), 500, 6);
  ProfileChoice choice;
  choice.layers_per_group = 4;
  choice.correction_rank = 8;
  const auto profile = calibrate(world, text, choice);
  foldkv_eviction eviction = policy_of("bellowskv-evict");
  foldkv_sequence_options options = evicting(eviction);
  options.dtype = FOLDKV_F16;
  const auto shared = make_sequence(world, profile.get(), options);
  const uint64_t before = world.stats().used_bytes;
  const auto sequence = make_sequence(world, profile.get(), options);
  (void)feed(world, {{sequence.get(), &text, 0, 400, false, {}}});
  const foldkv_sequence_stats stats = stats_of(sequence.get());
  // 68 + floor(332 / 2) tokens stay, 166 of them as latents in 3 pages of 64, 68 as rows in 5 pages of 16.
  CHECK(stats.held_head_tokens == 4 * 2 * 234);
  CHECK(stats.latent_token_bytes == 2 * (64 + 2) + 8 * 2);
  const uint64_t latent = 3 * 64 * (2 * (64 + 2) + 8 * 2);
  const uint64_t exact = 4 * 5 * 16 * 2 * 128 * 2;
  const uint64_t means = 2 * 512 * 2;
  const uint64_t correction = 512 * 8 * 2;
  CHECK(stats.ledger.latent == latent);
  CHECK(stats.ledger.exact == exact);
  CHECK(stats.ledger.mean == means);
  CHECK(stats.ledger.correction == correction);
  CHECK(stats.bytes == latent + exact + means + correction + stats.ledger.positions);
  CHECK(stats.bytes == world.stats().used_bytes - before);
  CHECK(stats.full_cache_bytes == 400 * 4 * 2 * 128 * 2);
  // Half of the tokens at 4 bits of 16, four layers in one: 2 * 13.9 on paper.
  const double achieved = static_cast<double>(stats.full_cache_bytes) / static_cast<double>(stats.bytes);
  CHECK(achieved < 6.0);
  CHECK(achieved > 3.0);
}

TEST_CASE("a cap holds while five thousand tokens are written") {
  const World world(layers_of(2, layer_of(2, 1, 16)));
  const Tokens text = text_of(world.layers(), 5300, 7);
  const auto profile = calibrate(world, text);
  for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
    foldkv_eviction eviction = keeping("h2o", 256);
    eviction.recent_tokens = 64;
    eviction.interval = 32;
    foldkv_sequence_options options = evicting(eviction);
    options.fold_tokens = 32;
    const auto sequence = make_sequence(world, chosen, options);
    (void)feed(world, {{sequence.get(), &text, 0, 300, false, {}}});
    uint64_t early = 0;
    uint64_t late = 0;
    for (int64_t token = 300; token < 5300; ++token) {
      if (token % 500 == 17) {
        CHECK(error_of_feeding(world, {sequence.get(), &text, token, 1, false, {}}) < 3e-5);
      } else {
        (void)feed(world, {{sequence.get(), &text, token, 1, false, {}}});
      }
      const foldkv_sequence_stats stats = stats_of(sequence.get());
      CHECK(stats.held_head_tokens <= 2 * (256 + 32));
      uint64_t& most = token < 1000 ? early : late;
      most = std::max(most, stats.bytes);
    }
    CHECK(late <= early);
    CHECK(stats_of(sequence.get()).next_position == 5300);
  }
}

// The published rule with uniform attention: every row gives each token that is there an equal share.
std::vector<int64_t> heavy_hitters(int64_t tokens, int64_t budget, int64_t sinks, int64_t recent) {
  std::vector<std::pair<int64_t, double>> held;
  for (int64_t token = 0; token < tokens; ++token) {
    held.emplace_back(token, 0.0);
    for (auto& [position, sum] : held) sum += 1.0 / static_cast<double>(held.size());
    if (std::ssize(held) <= budget) continue;
    const auto worst = std::min_element(held.begin() + sinks, held.end() - recent,
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    held.erase(worst);
  }
  std::vector<int64_t> kept;
  for (const auto& [position, sum] : held) kept.push_back(position);
  return kept;
}

TEST_CASE("the newest tokens never compete, and sums are those of the published rule") {
  LayerShape layer = layer_of(1, 1, 8);
  const World world({layer});
  Tokens text = text_of(world.layers(), 400, 8);
  std::fill(text.query[0].begin(), text.query[0].end(), 0.0F);
  foldkv_eviction eviction = keeping("h2o", 64);
  eviction.sink_tokens = 4;
  eviction.recent_tokens = 16;
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  for (int64_t token = 0; token < 400; ++token) {
    (void)feed(world, {{sequence.get(), &text, token, 1, false, {}}});
    const std::vector<int64_t> kept = kept_positions(sequence.get(), 0, 0);
    for (int64_t newest = 0; newest < std::min<int64_t>(16, token + 1); ++newest) {
      CHECK(kept[kept.size() - 1 - static_cast<size_t>(newest)] == token - newest);
    }
    if (token % 50 == 49) CHECK(kept == heavy_hitters(token + 1, 64, 4, 16));
  }
}

TEST_CASE("a policy that looks at the rows since its last eviction follows a text that changes its subject") {
  LayerShape layer = layer_of(1, 1, 8);
  layer.frequencies = {};
  const World world({layer});
  Tokens text = text_of(world.layers(), 400, 9);
  for (auto side : {&Tokens::query, &Tokens::key}) std::fill((text.*side)[0].begin(), (text.*side)[0].end(), 0.0F);
  for (size_t token = 0; token < 400; ++token) {
    const size_t subject = token < 200 ? 0 : 1;
    text.query[0][token * 8 + subject] = 8.0F;
    text.key[0][token * 8 + subject] = 2.0F + static_cast<float>(token) / 400.0F;
  }
  foldkv_eviction eviction = keeping("snapkv", 64);
  eviction.window_tokens = 16;
  eviction.interval = 16;
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  (void)feed(world, {{sequence.get(), &text, 0, 100, false, {}}});
  (void)generate(world, sequence.get(), text, 100, 300);
  const std::vector<int64_t> kept = kept_positions(sequence.get(), 0, 0);
  const double mean =
      static_cast<double>(std::accumulate(kept.begin(), kept.end(), int64_t{0})) / static_cast<double>(kept.size());
  CHECK(mean > 400.0 - 120.0);
  CHECK(kept.front() >= 200);
}

// A needle at token 100 that the prompt's last rows do not look at, and a query of a later turn that does.
struct Needle {
  std::vector<LayerShape> layers;
  Tokens text;
};
Needle make_needle() {
  LayerShape layer = layer_of(1, 1, 16);
  layer.frequencies = {};
  Needle needle{layers_of(2, layer), {}};
  needle.text = text_of(needle.layers, 401, 10);
  for (size_t index = 0; index < 2; ++index) {
    for (size_t token = 0; token < 401; ++token) {
      needle.text.key[index][token * 16 + 7] = token == 100 ? 4.0F : 0.0F;
      needle.text.query[index][token * 16 + 7] = token == 400 ? 6.0F : 0.0F;
    }
  }
  return needle;
}

double needle_weight(const World& world, const HeadTokens& held, const Tokens& text) {
  const int64_t count = std::ssize(held.positions);
  const PlainRow row = PlainHead(world.layers()[0], held).attend(text.query[0].data() + 400 * 16, 400, count);
  return row.weights[100];
}

TEST_CASE("a second question finds what codes keep, and the list of kept tokens says what eviction dropped") {
  const Needle needle = make_needle();
  const World world(needle.layers);
  ProfileChoice choice;
  choice.latent_width = 32;  // a lone token's direction is one that a narrower latent would leave out
  choice.key_bits = 8;
  const auto profile = calibrate(world, needle.text, choice);
  const auto full = make_sequence(world, nullptr);
  const auto compressed = make_sequence(world, profile.get());
  foldkv_eviction eviction = keeping("snapkv", 100);
  const auto evicted = make_sequence(world, profile.get(), evicting(eviction));
  for (const auto* sequence : {&full, &compressed, &evicted}) {
    (void)feed(world, {{sequence->get(), &needle.text, 0, 400, false, {}}});
  }
  const double all = needle_weight(world, held_tokens(world, full.get(), 0, 0), needle.text);
  CHECK(all > 0.3);
  CHECK(needle_weight(world, held_tokens(world, compressed.get(), 0, 0), needle.text) ==
        doctest::Approx(all).epsilon(0.02));
  const std::vector<int64_t> kept = kept_positions(evicted.get(), 0, 0);
  CHECK_FALSE(std::binary_search(kept.begin(), kept.end(), 100));
  // The host may know better, and a policy that keeps everything exists by name.
  const foldkv_position_range pinned = {100, 101};
  eviction.pinned = &pinned;
  eviction.pinned_count = 1;
  const auto told = make_sequence(world, profile.get(), evicting(eviction));
  (void)feed(world, {{told.get(), &needle.text, 0, 400, false, {}}});
  const std::vector<int64_t> kept_then = kept_positions(told.get(), 0, 0);
  CHECK(std::binary_search(kept_then.begin(), kept_then.end(), 100));
  const foldkv_eviction none = policy_of("full");
  const auto whole = make_sequence(world, profile.get(), evicting(none));
  (void)feed(world, {{whole.get(), &needle.text, 0, 400, false, {}}});
  CHECK(kept_positions(whole.get(), 0, 0) == all_of(400));
}

TEST_CASE("prompts of any lengths in one call are what each is alone, without padding") {
  const World world(layers_of(2, layer_of(4, 2, 16)));
  const Tokens text = text_of(world.layers(), 600, 11);
  const auto profile = calibrate(world, text);
  foldkv_eviction eviction = keeping("snapkv", 90);
  const foldkv_sequence_options options = evicting(eviction);
  std::vector<Owned<foldkv_sequence>> together;
  std::vector<Piece> pieces;
  for (const int64_t length : {1, 5, 64, 65, 300}) {
    together.push_back(make_sequence(world, profile.get(), options));
    pieces.push_back({together.back().get(), &text, length, length, false, {}});
  }
  (void)feed(world, pieces);
  for (size_t index = 0; index < pieces.size(); ++index) {
    CAPTURE(pieces[index].count);
    const auto alone = make_sequence(world, profile.get(), options);
    (void)feed(world, {{alone.get(), &text, pieces[index].first, pieces[index].count, false, {}}});
    CHECK(held_numbers(world, together[index].get()) == held_numbers(world, alone.get()));
    CHECK(stats_of(together[index].get()).bytes == stats_of(alone.get()).bytes);
    // Whoever pads on the left hands over the rest, with the positions it has there: sinks are its first tokens.
    std::vector<int64_t> padded = all_of(pieces[index].count);
    for (int64_t& position : padded) position += 1000;
    const auto behind = make_sequence(world, profile.get(), options);
    (void)feed(world, {{behind.get(), &text, pieces[index].first, pieces[index].count, false, padded}});
    CHECK(stats_of(behind.get()).bytes == stats_of(alone.get()).bytes);
    CHECK(kept_positions(behind.get(), 0, 0).front() == 1000);
  }
}

TEST_CASE("the runtime scores a long prompt from queries alone, in scratch that a full matrix would not fit") {
  const World estimating(layers_of(4, layer_of(32, 8, 128)));
  foldkv_eviction eviction = keeping("bellowskv-evict", 4096);
  foldkv_sequence_options options = evicting(eviction);
  options.dtype = FOLDKV_F16;
  auto estimate = sized<foldkv_estimate>();
  REQUIRE(foldkv_sequence_estimate(estimating.runtime(), estimating.model(), nullptr, &options, nullptr, 32768, 0,
                                   &estimate, nullptr) == FOLDKV_OK);
  const uint64_t rows = uint64_t{32768} * 4 * 2 * 8 * 128 * 2;
  CHECK(estimate.peak_bytes - rows < (64u << 20));

  const std::vector<LayerShape> layers = layers_of(2, layer_of(2, 1, 16));
  const World world(layers);
  const Tokens text = text_of(layers, 4096, 12);
  eviction = keeping("bellowskv-evict", 512);
  eviction.layers_per_group = 2;
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  (void)feed_in_chunks(world, sequence.get(), text, 0, 4096, 512);
  const std::vector<int64_t> expected = kept_plainly(window_sums(layers, text, 4096, 64, 0, 1), {}, 512 - 68);
  CHECK(kept_positions(sequence.get(), 1, 0) == expected);
}

}  // namespace
}  // namespace foldkv::test::field
