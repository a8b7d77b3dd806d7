#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/cache/estimate.h"
#include "runtime/calibration/plan_bits.h"
#include "tests/runtime/cache/toy_host.h"

// Sequences under bit plans: several codes and rates, coordinates that are not stored, several plans of one profile.
namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 300;
constexpr int64_t kGenerated = 20;

// Groups of one layer, of three and of all four; a key width (24) that units of 16 do not divide.
std::shared_ptr<const Profile> planned(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                       int64_t layers_per_group) {
  ProfileChoice choice;
  choice.layers_per_group = layers_per_group;
  choice.latent_width = 1000;  // all coordinates
  choice.scale_group = 16;
  choice.rotate = true;
  const auto profile = calibrate(runtime, host, choice);
  return std::make_shared<const Profile>(
      plan_bits(*profile, {{"3x", 0.0, 3.0}, {"8x", 0.0, 8.0}, {"12x", 0.0, 12.0}}).value());
}

ToyShape shape_of_plans() {
  ToyShape shape;
  shape.layers = 4;
  shape.query_heads = 6;
  shape.kv_heads = 3;
  shape.head_size = 8;
  return shape;
}

SequencePolicy policy_of(size_t plan) {
  SequencePolicy policy;
  policy.recent_tokens = 10;
  policy.fold_tokens = 8;
  policy.plan = plan;
  return policy;
}

struct Life {
  LayerOutputs prompt;
  std::vector<LayerOutputs> generated;

  bool operator==(const Life&) const = default;
};

Life live(const std::shared_ptr<Runtime>& runtime, const ToyHost& host, const std::shared_ptr<const Profile>& profile,
          size_t plan, int64_t chunk) {
  const ToyTokens tokens = host.tokens(kPrompt + kGenerated, 5);
  const auto sequence = make_sequence(runtime, host, profile, policy_of(plan));
  Life life;
  life.prompt = feed_in_chunks(runtime, host, sequence, tokens, 0, kPrompt, chunk);
  for (int64_t token = kPrompt; token < kPrompt + kGenerated; ++token) {
    life.generated.push_back(run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}}));
  }
  return life;
}

TEST_CASE("bit plans: the same bits whole, in chunks and on several threads, close between backends") {
  const ToyHost host(shape_of_plans());
  for (const int64_t layers : {1, 3, 4}) {
    CAPTURE(layers);
    const auto profile = planned(open_runtime({"cpu", 1}), host, layers);
    for (size_t plan = 0; plan < 3; ++plan) {
      CAPTURE(plan);
      const Life whole = live(open_runtime({"cpu", 1}), host, profile, plan, kPrompt);
      for (const auto& [threads, chunk] : {std::pair{1, 1}, {2, 7}, {3, 256}}) {
        CHECK(live(open_runtime({"cpu", threads}), host, profile, plan, chunk) == whole);
      }
      const Life reference = live(open_runtime({"reference"}), host, profile, plan, kPrompt);
      CHECK(live(open_runtime({"reference"}), host, profile, plan, 7) == reference);
      for (size_t layer = 0; layer < whole.prompt.size(); ++layer) {
        const std::vector<float>& output = reference.generated.back()[layer];
        // Here and there a latent on an edge makes another string; most tokens agree to the last bits.
        CHECK(relative_error(whole.generated.back()[layer], {output.begin(), output.end()}) < 0.02);
      }
    }
  }
}

TEST_CASE("sequences under different plans of one profile share a step and the bases") {
  const ToyHost host(shape_of_plans());
  const auto runtime = open_runtime({"cpu", 2});
  const auto profile = planned(runtime, host, 2);
  std::vector<std::shared_ptr<Sequence>> sequences;
  std::vector<Life> alone;
  for (size_t plan = 0; plan < 3; ++plan) {
    alone.push_back(live(runtime, host, profile, plan, kPrompt));
    sequences.push_back(make_sequence(runtime, host, profile, policy_of(plan)));
  }
  CHECK(sequences[0]->shared_profile() == sequences[2]->shared_profile());
  const ToyTokens tokens = host.tokens(kPrompt + kGenerated, 5);
  std::vector<ToyFeed> feeds;
  for (const auto& sequence : sequences) feeds.push_back({sequence, &tokens, 0, kPrompt, false, {}});
  const LayerOutputs together = run_step(runtime, host, feeds);
  const auto rows = static_cast<std::ptrdiff_t>(kPrompt * host.shape().query_width());
  for (size_t plan = 0; plan < 3; ++plan) {
    for (size_t layer = 0; layer < together.size(); ++layer) {
      const auto first = together[layer].begin() + static_cast<std::ptrdiff_t>(plan) * rows;
      CHECK(std::vector<float>(first, first + rows) == alone[plan].prompt[layer]);
    }
  }
  for (int64_t token = 0; token < kGenerated; ++token) {
    std::vector<ToyFeed> next;
    for (const auto& sequence : sequences) next.push_back({sequence, &tokens, kPrompt + token, 1, false, {}});
    const LayerOutputs outputs = run_step(runtime, host, next);
    const auto width = static_cast<std::ptrdiff_t>(host.shape().query_width());
    for (size_t plan = 0; plan < 3; ++plan) {
      for (size_t layer = 0; layer < outputs.size(); ++layer) {
        const auto first = outputs[layer].begin() + static_cast<std::ptrdiff_t>(plan) * width;
        CHECK(std::vector<float>(first, first + width) == alone[plan].generated[static_cast<size_t>(token)][layer]);
      }
    }
  }
  CHECK(sequences[0]->storage().ledger().total() > sequences[1]->storage().ledger().total());
  CHECK(sequences[1]->storage().ledger().total() > sequences[2]->storage().ledger().total());
}

TEST_CASE("an estimate under a plan is what is then used, to the byte") {
  const ToyHost host(shape_of_plans());
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name, 2});
    const auto profile = planned(runtime, host, 3);
    for (size_t plan = 0; plan < 3; ++plan) {
      const auto estimate =
          estimate_sequence(*runtime, host.model(), profile, {policy_of(plan), {}, kPrompt, kGenerated});
      REQUIRE(estimate.ok());
      const auto small = open_runtime({name, 2, false, estimate->shared_bytes + estimate->peak_bytes});
      const auto sequence = make_sequence(small, host, profile, policy_of(plan));
      const ToyTokens tokens = host.tokens(kPrompt + kGenerated, 5);
      (void)run_step(small, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
      for (int64_t token = kPrompt; token < kPrompt + kGenerated; ++token) {
        (void)run_step(small, host, {{sequence, &tokens, token, 1, false, {}}});
      }
      CHECK(sequence->storage().ledger().total() == estimate->sequence_bytes);
    }
  }
}

// Rebuilt keys of layer 0 against those that were fed.
double key_error(const ToyHost& host, const ProfileChoice& choice, double offset) {
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, calibrate(runtime, host, choice), policy_of(0));
  const ToyTokens tokens = host.tokens(kPrompt, 4);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
  const int64_t width = host.shape().key_width();
  std::vector<float> keys(static_cast<size_t>(kPrompt * width));
  const MutableTensorView view{reinterpret_cast<std::byte*>(keys.data()), NumberFormat::kF32, kPrompt, width, width};
  REQUIRE(sequence->rebuild({0, backend::Side::kKeys, false, 0, kPrompt}, view).ok());
  std::vector<double> expected(tokens.key[0].begin(), tokens.key[0].end());
  for (float& number : keys) number -= static_cast<float>(offset);
  for (double& number : expected) number -= offset;
  return relative_error(keys, expected);
}

TEST_CASE("with a strong key bias, storage without a mean is worse, and so is one without rotation") {
  ToyShape shape = shape_of_plans();
  shape.key_offset = 50.0;
  const ToyHost host(shape);
  ProfileChoice choice;
  choice.layers_per_group = 4;
  choice.latent_width = 1000;
  choice.scale_group = 96;
  choice.bits = 3;
  choice.rotate = true;
  const double good = key_error(host, choice, 50.0);
  ProfileChoice plain = choice;
  plain.rotate = false;
  CHECK(key_error(host, plain, 50.0) > 1.05 * good);
  ProfileChoice uncentred = choice;
  uncentred.uncentred = true;
  CHECK(key_error(host, uncentred, 50.0) > 2.0 * good);
}

}  // namespace
}  // namespace foldkv::test
