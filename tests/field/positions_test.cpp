#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section C: which angle a key is turned by, and which it must not be.
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

// Frequencies as the families scale them.
std::vector<double> llama3_frequencies(int64_t rotated) {
  std::vector<double> frequencies = plain_frequencies(rotated, 500000.0);
  for (double& frequency : frequencies) {
    const double turns = 8192.0 * frequency / (2.0 * std::acos(-1.0));
    if (turns >= 4.0) continue;
    const double smooth = std::max(0.0, (turns - 1.0) / (4.0 - 1.0));
    frequency = (1.0 - smooth) * frequency / 32.0 + smooth * frequency;
  }
  return frequencies;
}

std::vector<double> yarn_frequencies(int64_t rotated, double factor, double original) {
  std::vector<double> frequencies = plain_frequencies(rotated);
  const auto place = [&](double turns) {
    return static_cast<double>(rotated) * std::log(original / (turns * 2.0 * std::acos(-1.0))) /
           (2.0 * std::log(10000.0));
  };
  const double low = std::floor(place(32.0));
  const double high = std::ceil(place(1.0));
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    frequencies[j] = frequencies[j] * (1.0 - ramp) + frequencies[j] / factor * ramp;
  }
  return frequencies;
}

struct Scaling {
  const char* name;
  std::vector<double> frequencies;
  double scale;
};
std::vector<Scaling> scalings(int64_t rotated) {
  std::vector<Scaling> all = {{"none", plain_frequencies(rotated), 0.0}, {"linear", plain_frequencies(rotated), 0.0}};
  for (double& frequency : all[1].frequencies) frequency /= 8.0;
  all.push_back({"llama3", llama3_frequencies(rotated), 0.0});
  all.push_back({"yarn", yarn_frequencies(rotated, 32.0, 4096.0), 0.1 * std::log(32.0) + 1.0});
  all.push_back({"longrope", plain_frequencies(rotated), std::sqrt(1.0 + std::log(32.0) / std::log(4096.0))});
  for (size_t j = 0; j < all.back().frequencies.size(); ++j) all.back().frequencies[j] /= 1.0 + static_cast<double>(j);
  all.push_back({"dynamic ntk", plain_frequencies(rotated, 10000.0 * std::pow(33.0, 128.0 / 126.0)), 0.0});
  return all;
}

std::vector<float> rebuilt_keys(const World& world, const foldkv_sequence* sequence, int32_t rotated) {
  const LayerShape& layer = world.layers()[0];
  int64_t count = stats_of(sequence).tokens;
  std::vector<float> rows(static_cast<size_t>(count * layer.key_width()));
  foldkv_tensor output{};
  output.data = rows.data();
  output.dtype = FOLDKV_F32;
  output.rank = 3;
  output.shape[0] = count;
  output.shape[1] = layer.kv_heads;
  output.shape[2] = layer.head_size;
  auto options = sized<foldkv_rebuild_options>();
  options.rotated = rotated;
  REQUIRE(foldkv_sequence_rebuild(sequence, &options, &output, nullptr) == FOLDKV_OK);
  return rows;
}

TEST_CASE("every way to scale frequencies, at positions near and far") {
  const std::vector<int64_t> positions = {0, 1, 7, 4095, 4096, 8191, 8192, 131071};
  for (const Scaling& scaling : scalings(128)) {
    CAPTURE(scaling.name);
    LayerShape layer = layer_of(1, 1, 128);
    layer.frequencies = scaling.frequencies;
    layer.rotation_scale = scaling.scale;
    const World world({layer});
    const Tokens text = text_of(world.layers(), 8, 5);
    const auto sequence = make_sequence(world, nullptr);
    (void)feed(world, {{sequence.get(), &text, 0, 8, false, positions}});
    const std::vector<float> rotated = rebuilt_keys(world, sequence.get(), 1);
    std::vector<double> expected;
    for (size_t token = 0; token < positions.size(); ++token) {
      const std::vector<double> row = turned(layer, text.key[0].data() + 128 * token, positions[token]);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    CHECK(largest_error(rotated, expected) < 1e-5);
  }
}

TEST_CASE("YaRN far out: its magnitude acts on queries and keys, once each") {
  LayerShape layer = layer_of(2, 1, 64);
  layer.frequencies = yarn_frequencies(64, 64.0, 4096.0);
  layer.rotation_scale = 0.1 * std::log(64.0) + 1.0;
  const World world({layer});
  const Tokens text = text_of(world.layers(), 6, 6);
  for (const char* backend : {"cpu", "reference"}) {
    WorldChoice choice;
    choice.backend = backend;
    const World far({layer}, choice);
    const auto sequence = make_sequence(far, nullptr);
    const std::vector<int64_t> positions = {0, 1, 4096, 100000, 262142, 262143};
    CHECK(error_of_feeding(far, {sequence.get(), &text, 0, 6, false, positions}) < 1e-4);
  }
  // The score of a lone key: q . k * scale^2 / sqrt(64), whatever the position.
  const auto sequence = make_sequence(world, nullptr);
  const Outputs outputs = feed(world, {{sequence.get(), &text, 0, 1, false, {262143}}});
  double product = 0.0;
  for (size_t i = 0; i < 64; ++i) product += double{text.query[0][i]} * text.key[0][i];
  CHECK(outputs.log_sum_exp[0][0] ==
        doctest::Approx(product * layer.rotation_scale * layer.rotation_scale / 8.0).epsilon(1e-4));
}

TEST_CASE("the numbers of a head that do not rotate pass through bit by bit, compressed too") {
  struct Partial {
    int32_t head_size;
    int32_t rotated;
  };
  for (const auto& [head_size, rotated] : {Partial{80, 32}, {64, 16}, {96, 96}}) {
    CAPTURE(head_size);
    LayerShape layer = layer_of(2, 2, head_size);
    layer.frequencies = plain_frequencies(rotated);
    const World world({layer, layer});
    const Tokens text = text_of(world.layers(), 120, 7);
    ProfileChoice corrected;
    corrected.correction_rank = 4;
    const auto profile = calibrate(world, text, corrected);
    for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
      const auto sequence = make_sequence(world, chosen);
      (void)feed(world, {{sequence.get(), &text, 0, 100, false, {}}});
      const std::vector<float> plain = rebuilt_keys(world, sequence.get(), 0);
      const std::vector<float> rows = rebuilt_keys(world, sequence.get(), 1);
      int64_t turned_numbers = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        if (static_cast<int32_t>(i % static_cast<size_t>(head_size)) >= rotated) {
          CHECK(rows[i] == plain[i]);
        } else if (rows[i] != plain[i]) {
          ++turned_numbers;
        }
      }
      CHECK(turned_numbers > 99 * 2 * rotated * 9 / 10);
      CHECK(error_of_feeding(world, {sequence.get(), &text, 100, 1, false, {}}) < 2e-5);
    }
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

TEST_CASE("the table of frequencies is the model's own: what the host does with its copy later is nobody's business") {
  LayerShape layer = layer_of(2, 1, 96);
  const World world({layer});
  const Tokens text = text_of(world.layers(), 30, 11);
  const auto sequence = make_sequence(world, nullptr);
  (void)feed(world, {{sequence.get(), &text, 0, 20, false, {}}});
  LayerShape longer = layer;
  for (size_t j = 0; j < longer.frequencies.size(); ++j) longer.frequencies[j] /= 1.0 + static_cast<double>(j);
  const World other({longer});
  CHECK(foldkv_model_fingerprint(other.model()) != foldkv_model_fingerprint(world.model()));
  // A sequence of the one model cannot go on with the table of the other: all of it is of one table.
  const auto second = make_sequence(other, nullptr);
  CHECK(error_of_feeding(other, {second.get(), &text, 0, 20, false, {}}) < 1e-5);
  CHECK(error_of_feeding(world, {sequence.get(), &text, 20, 10, false, {}}) < 1e-5);
}

TEST_CASE("pairs of halves and pairs of neighbours are one another under a permutation, and none is the default") {
  LayerShape split = layer_of(1, 1, 8);
  LayerShape woven = split;
  woven.pairing = FOLDKV_PAIRING_INTERLEAVED;
  const World first({split});
  const World second({woven});
  const Tokens text = text_of(first.layers(), 20, 12);
  Tokens permuted = text;
  for (size_t token = 0; token < 20; ++token) {
    for (size_t pair = 0; pair < 4; ++pair) {
      for (auto side : {&Tokens::key, &Tokens::query}) {
        (permuted.*side)[0][token * 8 + 2 * pair] = (text.*side)[0][token * 8 + pair];
        (permuted.*side)[0][token * 8 + 2 * pair + 1] = (text.*side)[0][token * 8 + pair + 4];
      }
    }
  }
  const auto halves = make_sequence(first, nullptr);
  const auto neighbours = make_sequence(second, nullptr);
  const auto unpermuted = make_sequence(second, nullptr);
  (void)feed(first, {{halves.get(), &text, 0, 20, false, {}}});
  (void)feed(second, {{neighbours.get(), &permuted, 0, 20, false, {}}});
  (void)feed(second, {{unpermuted.get(), &text, 0, 20, false, {}}});
  const std::vector<float> left = rebuilt_keys(first, halves.get(), 1);
  const std::vector<float> right = rebuilt_keys(second, neighbours.get(), 1);
  for (size_t token = 0; token < 20; ++token) {
    for (size_t pair = 0; pair < 4; ++pair) {
      CHECK(left[token * 8 + pair] == right[token * 8 + 2 * pair]);
      CHECK(left[token * 8 + pair + 4] == right[token * 8 + 2 * pair + 1]);
    }
  }
  CHECK(rebuilt_keys(second, unpermuted.get(), 1) != left);
  split.pairing = 0;
  foldkv_error error = sized<foldkv_error>();
  CHECK(make_model({split}, &error) == nullptr);
  CHECK(error.status == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.argument) == "layers[0].rotation.pairing");
}

}  // namespace
}  // namespace foldkv::test::field
