#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section C: which position a token has, and which it must not have.
namespace foldkv::test::field {
namespace {

std::vector<LayerShape> two_layers() { return layers_of(2, layer_of(4, 2, 64)); }

// Without intervals: nothing is evicted after the prompt.
foldkv_eviction keeping(const char* name, int64_t tokens) {
  foldkv_eviction eviction = policy_of(name);
  eviction.keep_ratio = 0.0;
  eviction.ratio_of_unprotected = 0;
  eviction.budget_tokens = tokens;
  eviction.interval = 0;
  if (eviction.window_tokens > 0) eviction.window_tokens = 16;
  return eviction;
}

foldkv_sequence_options evicting(const foldkv_eviction& eviction) {
  foldkv_sequence_options options = f32_options();
  options.recent_tokens = 16;
  options.fold_tokens = 16;
  options.eviction = &eviction;
  return options;
}

TEST_CASE("a kept-row count is never a position") {
  const World world(two_layers());
  const Tokens text = text_of(world.layers(), 302, 1);
  const foldkv_eviction eviction = keeping("bellowskv-evict", 128);
  ProfileChoice eight_bits;
  eight_bits.key_bits = eight_bits.value_bits = 8;
  const auto profile = calibrate(world, text, eight_bits);
  for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
    const auto sequence = make_sequence(world, chosen, evicting(eviction));
    (void)feed(world, {{sequence.get(), &text, 0, 300, false, {}}});
    const std::vector<int64_t> kept = kept_positions(sequence.get(), 1, 0);
    CHECK(kept.size() == 128);
    CHECK(kept.back() == 299);
    CHECK(error_of_feeding(world, {sequence.get(), &text, 300, 1, false, {}}) < 2e-5);
    const foldkv_sequence_stats stats = stats_of(sequence.get());
    CHECK(stats.next_position == 301);
    CHECK(stats.tokens == 301);
    CHECK(stats.held_head_tokens == 129 * 4);
    CHECK(kept_positions(sequence.get(), 0, 1).back() == 300);
  }
}

TEST_CASE("after an eviction eight tokens at once and one by one are the same tokens") {
  const World world(two_layers());
  const Tokens text = text_of(world.layers(), 210, 2);
  const foldkv_eviction eviction = keeping("bellowskv-evict", 100);
  const auto profile = calibrate(world, text);
  const auto singly = make_sequence(world, profile.get(), evicting(eviction));
  const auto together = make_sequence(world, profile.get(), evicting(eviction));
  for (const auto* sequence : {&singly, &together}) (void)feed(world, {{sequence->get(), &text, 0, 200, false, {}}});
  CHECK(generate(world, singly.get(), text, 200, 8) == feed(world, {{together.get(), &text, 200, 8, false, {}}}));
  CHECK(held_numbers(world, singly.get()) == held_numbers(world, together.get()));
  CHECK(stats_of(singly.get()).next_position == 208);
  CHECK(stats_of(together.get()).next_position == 208);
}

// Sinks and recent tokens of a stream that has `fed` tokens, 4 and 28 of them.
std::vector<int64_t> streamed(int64_t fed) {
  std::vector<int64_t> kept;
  for (int64_t token = 0; token < fed; ++token) {
    if (token < 4 || token >= fed - 28) kept.push_back(token);
  }
  return kept;
}

// The tokens that are kept, as if they were the whole text: outputs of one more at the given position.
std::vector<double> streamed_context(const LayerShape& layer, const Tokens& text, size_t index, int64_t fed,
                                     bool compact) {
  std::vector<double> expected;
  for (int64_t head = 0; head < layer.query_heads; ++head) {
    HeadTokens tokens;
    const int64_t kv_head = head * layer.kv_heads / layer.query_heads;
    std::vector<int64_t> kept = streamed(fed);
    kept.push_back(fed);
    for (size_t place = 0; place < kept.size(); ++place) {
      const int64_t at = kept[place] * layer.key_width() + kv_head * layer.head_size;
      tokens.append(compact ? static_cast<int64_t>(place) : kept[place], text.key[index].data() + at,
                    text.value[index].data() + at, layer.head_size);
    }
    const float* query = text.query[index].data() + fed * layer.query_width() + head * layer.head_size;
    const PlainRow row = PlainHead(layer, tokens).attend(query, tokens.positions.back(), std::ssize(tokens.positions));
    expected.insert(expected.end(), row.context.begin(), row.context.end());
  }
  return expected;
}

TEST_CASE("a stream keeps its positions or is renumbered, and never half of it") {
  const World world(layers_of(2, layer_of(4, 2, 16)));
  const Tokens text = text_of(world.layers(), 501, 3);
  for (const bool compact : {false, true}) {
    CAPTURE(compact);
    foldkv_eviction eviction = keeping(compact ? "streaming-llm-reindexed" : "streaming-llm", 32);
    eviction.interval = 1;
    const auto sequence = make_sequence(world, nullptr, evicting(eviction));
    for (int64_t token = 0; token <= 500; ++token) {
      const foldkv_sequence_stats before = stats_of(sequence.get());
      CHECK(before.next_position == (compact ? std::min<int64_t>(token, 32) : token));
      const Outputs outputs = feed(world, {{sequence.get(), &text, token, 1, false, {}}});
      if (token != 32 && token != 33 && token != 60 && token != 500) continue;
      for (size_t layer = 0; layer < 2; ++layer) {
        CHECK(largest_error(outputs.context[layer],
                            streamed_context(world.layers()[layer], text, layer, token, compact)) < 1e-5);
      }
      const std::vector<int64_t> kept = kept_positions(sequence.get(), 1, 1);
      REQUIRE(kept.size() == 32);
      CHECK(kept.back() == (compact ? 31 : token));
      CHECK(kept[4] == (compact ? 4 : token - 27));
    }
  }
}

TEST_CASE("a key that has been renumbered hundreds of times is the key that came in") {
  const World world(layers_of(2, layer_of(4, 2, 16)));
  const Tokens text = text_of(world.layers(), 600, 4);
  foldkv_eviction eviction = keeping("streaming-llm-reindexed", 300);
  eviction.interval = 1;
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  (void)generate(world, sequence.get(), text, 0, 600);
  const LayerShape& layer = world.layers()[1];
  const HeadTokens held = held_tokens(world, sequence.get(), 1, 0);
  REQUIRE(held.positions.size() == 300);
  // Row 4 is the oldest recent token; it came in at place 299 and has moved down since, one place a token.
  for (int64_t place = 0; place < 300; ++place) {
    const int64_t token = place < 4 ? place : place + 300;
    const float* given = text.key[1].data() + token * layer.key_width();
    CHECK(std::equal(given, given + 16, held.keys.begin() + place * 16));
    CHECK(held.positions[static_cast<size_t>(place)] == place);
  }
}

TEST_CASE("layers that rotate by different bases stay apart when positions shift") {
  LayerShape local = layer_of(2, 1, 32);
  LayerShape global = local;
  global.frequencies = plain_frequencies(32, 1e6);
  for (double& frequency : global.frequencies) frequency /= 8.0;
  const World world({local, local, global, local, local, global});
  const Tokens text = text_of(world.layers(), 161, 8);
  foldkv_eviction eviction = keeping("streaming-llm-reindexed", 60);
  eviction.sink_tokens = 0;
  const auto sequence = make_sequence(world, nullptr, evicting(eviction));
  (void)feed(world, {{sequence.get(), &text, 0, 160, false, {}}});
  // The oldest 100 are gone: what was at 100 is at 0.
  CHECK(stats_of(sequence.get()).next_position == 60);
  const HeadTokens held = held_tokens(world, sequence.get(), 2, 0);
  CHECK(std::equal(held.keys.begin(), held.keys.begin() + 32, text.key[2].begin() + 100 * 32));
  CHECK(error_of_feeding(world, {sequence.get(), &text, 160, 1, false, {}}) < 1e-5);
}

TEST_CASE("old tokens leave a full cache of latents a thousand times, and the others keep their codes") {
  const World world(layers_of(2, layer_of(2, 2, 16)));
  const Tokens text = text_of(world.layers(), 1000, 9);
  const auto profile = calibrate(world, text);
  foldkv_eviction eviction = keeping("streaming-llm", 64);
  eviction.interval = 1;
  const auto sequence = make_sequence(world, profile.get(), evicting(eviction));
  uint64_t early = 0;
  uint64_t late = 0;
  int64_t survivors = 0;
  HeadTokens before;
  for (int64_t token = 0; token < 1000; ++token) {
    (void)feed(world, {{sequence.get(), &text, token, 1, false, {}}});
    uint64_t& most = token < 200 ? early : late;
    most = std::max(most, world.stats().used_bytes);
    if (token % 10 != 0) continue;
    const HeadTokens now = held_tokens(world, sequence.get(), 1, 1);
    CHECK(std::ssize(now.positions) <= 64 + 16);
    // Tokens that are latents by now and were latents ten tokens ago decode to the same numbers.
    for (size_t old = 4; old + 32 < before.positions.size(); ++old) {
      const auto found = std::find(now.positions.begin(), now.positions.end(), before.positions[old]);
      if (found == now.positions.end()) continue;
      const auto place = found - now.positions.begin();
      CHECK(std::equal(now.keys.begin() + place * 16, now.keys.begin() + (place + 1) * 16,
                       before.keys.begin() + static_cast<int64_t>(old) * 16));
      ++survivors;
    }
    if (token > 100) CHECK(stats_of(sequence.get()).latent_tokens > 0);
    before = now;
  }
  CHECK(late <= early);
  CHECK(survivors > 500);
}

TEST_CASE("a position is one number: tokens of an image that share one are refused by name") {
  const World world({layer_of(1, 1, 16)});
  const Tokens text = text_of(world.layers(), 6, 10);
  const auto sequence = make_sequence(world, nullptr);
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  CHECK(try_feed(world, {{sequence.get(), &text, 0, 6, false, {0, 1, 2, 2, 2, 3}}}, &outputs, &error) ==
        FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument) == "feeds[0].positions");
  CHECK(stats_of(sequence.get()).tokens == 0);
  // Few positions and many cells, or the other way round: cells are what counts against the budget.
  CHECK(try_feed(world, {{sequence.get(), &text, 0, 6, false, {0, 1, 20, 300, 4000, 50000}}}, &outputs, &error) ==
        FOLDKV_OK);
  CHECK(stats_of(sequence.get()).tokens == 6);
  CHECK(stats_of(sequence.get()).next_position == 50001);
}

}  // namespace
}  // namespace foldkv::test::field
