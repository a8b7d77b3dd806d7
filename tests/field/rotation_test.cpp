#include <algorithm>
#include <cmath>

#include "tests/field/field_world.h"

// Field reports, section C: which angle a key is turned by.
namespace foldkv::test::field {
namespace {

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
