#include "runtime/cache/choose_plan.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/plan_bits.h"
#include "tests/runtime/cache/eviction_scene.h"

namespace foldkv::test {
namespace {

constexpr int64_t kTokens = 300;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Plans of 3, 8 and 12 times less than 16 bit; the first is the largest.
struct Scene {
  Scene() {
    ProfileChoice choice;
    choice.latent_width = 1000;
    choice.scale_group = 16;
    const auto calibrated = calibrate(runtime, host, choice);
    profile = std::make_shared<const Profile>(
        plan_bits(*calibrated, {{"3x", 0.0, 3.0}, {"8x", 0.0, 8.0}, {"12x", 0.0, 12.0}}).value());
    wish.life.prompt_tokens = kTokens;
    wish.life.generated_tokens = 5;
    wish.sequences = 3;
  }

  [[nodiscard]] StatusOr<PlanChoice> choose() const { return choose_plan(*runtime, host.model(), profile, wish); }
  [[nodiscard]] int64_t total(size_t plan, int64_t tokens = kTokens) const {
    EstimateQuestion life = wish.life;
    life.policy.plan = plan;
    life.prompt_tokens = tokens;
    const Estimate estimate = estimate_sequence(*runtime, host.model(), profile, life).value();
    return estimate.shared_bytes + (wish.sequences - 1) * estimate.held_bytes + estimate.peak_bytes;
  }
  [[nodiscard]] double cost(size_t plan) const { return expected_cost(*profile, profile->plans[plan]); }

  ToyHost host{ToyShape{}};
  std::shared_ptr<Runtime> runtime = open_runtime({});
  std::shared_ptr<const Profile> profile;
  CacheWish wish;
};

// 4 layers of 2 heads of 8, in 2 groups of 16 coordinates of 4 bits: 10 bytes for a side of a group.
TEST_CASE("bytes counted by hand") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 0});
  CacheWish wish;
  wish.life.prompt_tokens = kTokens;  // 4 sinks, 232 latents, 64 recent
  const auto choice = choose_plan(*runtime, host.model(), profile, wish);
  REQUIRE_MESSAGE(choice.ok(), std::string(choice.status().message()));
  const int64_t latents = 2 * 4 * (64 * 20) + 4 * (64 * 4);  // pages of both groups, pages of positions
  const int64_t exact = 4 * 5 * (16 * 2 * 16 * 2) + 5 * (16 * 4);  // 5 pages of 16 tokens
  const int64_t means = 2 * 2 * (32 * 2);
  CHECK(choice->bytes.sequence == latents + exact + means);
  CHECK(choice->bytes_per_token == 40);
  CHECK(choice->tokens_kept == kTokens);
  CHECK(choice->keep_ratio == 1.0);
  const int64_t one = choice->bytes.total;
  CHECK(one > choice->bytes.shared + choice->bytes.sequence);  // a step needs scratch
  wish.sequences = 5;
  const auto five = choose_plan(*runtime, host.model(), profile, wish);
  CHECK(five->bytes.total == one + 4 * choice->bytes.sequence);
  CHECK(five->bytes.shared == choice->bytes.shared);
}

TEST_CASE("the least cost that fits, to the byte") {
  Scene scene;
  REQUIRE(scene.total(0) > scene.total(1));
  REQUIRE(scene.total(1) > scene.total(2));
  REQUIRE(scene.cost(0) < scene.cost(1));
  CHECK(scene.choose()->plan == 0);  // without a wish nothing speaks for less
  for (const int64_t plan : {0, 1, 2}) {
    scene.wish.budget_bytes = scene.total(static_cast<size_t>(plan));
    const auto choice = scene.choose();
    REQUIRE(choice.ok());
    CHECK(choice->plan == plan);
    CHECK(choice->bytes.total == scene.wish.budget_bytes);
    CHECK(choice->expected_cost == scene.cost(static_cast<size_t>(plan)));
    CHECK(choice->keep_ratio == 1.0);
    CHECK(holds(choice->explanation, "3 sequences of 300 + 5 tokens"));
    CHECK(holds(choice->explanation, "Chosen: " + scene.profile->plans[static_cast<size_t>(plan)].name));
    CHECK(holds(choice->explanation, "too large") == (plan > 0));
  }
}

TEST_CASE("a real run stays within what was chosen") {
  Scene scene;
  scene.wish.life.generated_tokens = 80;
  scene.wish.budget_bytes = scene.total(1);
  const auto choice = scene.choose();
  REQUIRE(choice.ok());
  REQUIRE(choice->plan == 1);
  const auto runtime = open_runtime({"cpu", 1, false, scene.wish.budget_bytes});
  SequencePolicy policy;
  policy.plan = 1;
  std::vector<std::shared_ptr<Sequence>> sequences;
  const ToyTokens tokens = scene.host.tokens(kTokens + 80, 5);
  for (int i = 0; i < 3; ++i) {
    sequences.push_back(make_sequence(runtime, scene.host, scene.profile, policy));
    (void)run_step(runtime, scene.host, {{sequences.back(), &tokens, 0, kTokens, false, {}}});
  }
  for (int64_t token = kTokens; token < kTokens + 80; ++token) {
    for (const auto& sequence : sequences) {
      (void)run_step(runtime, scene.host, {{sequence, &tokens, token, 1, false, {}}});
      CHECK(sequence->storage().ledger().total() <= choice->bytes.sequence);
    }
  }
}

TEST_CASE("when no plan fits, the smallest with the share that fits") {
  Scene scene;
  scene.wish.budget_bytes = scene.total(2) * 3 / 4;
  const auto choice = scene.choose();
  REQUIRE(choice.ok());
  CHECK(choice->plan == 2);
  CHECK(choice->tokens_kept < kTokens);
  CHECK(choice->keep_ratio == static_cast<double>(choice->tokens_kept) / kTokens);
  CHECK(choice->bytes.total == scene.total(2, choice->tokens_kept));
  CHECK(choice->bytes.total <= scene.wish.budget_bytes);
  CHECK(scene.total(2, choice->tokens_kept + 1) > scene.wish.budget_bytes);
  CHECK(holds(choice->explanation, absl::StrCat("with ", choice->tokens_kept, " tokens of each prompt")));

  scene.wish.budget_bytes = 1000;
  const Status status = scene.choose().status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(argument_of(status) == "wish.budget_bytes");
  CHECK(holds(std::string(status.message()), absl::StrCat("expected ", scene.total(2, 1), " or more")));
}

TEST_CASE("bits and tokens from one budget: evicting, the prompt is fed whole") {
  Scene scene;
  scene.wish.sequences = 40;  // so that caches at rest outweigh the step of one of them
  EvictionPolicy evict = small_policy("bellowskv-evict", 200, 4);
  evict.budget.tokens = 9;  // not looked at
  evict.selection.sink_tokens = 1;
  scene.wish.life.policy = evicting(evict, NumberFormat::kF16);
  scene.wish.life.policy.recent_tokens = 16;
  const auto total = [&](size_t plan, int64_t kept) {
    EvictionPolicy policy = evict;
    policy.budget.tokens = kept;
    EstimateQuestion life = scene.wish.life;
    life.policy = evicting(policy, NumberFormat::kF16);
    life.policy.recent_tokens = 16;
    life.policy.plan = plan;
    const Estimate estimate = estimate_sequence(*scene.runtime, scene.host.model(), scene.profile, life).value();
    return estimate.shared_bytes + (scene.wish.sequences - 1) * estimate.held_bytes + estimate.peak_bytes;
  };
  scene.wish.budget_bytes = total(2, 180);
  REQUIRE(scene.wish.budget_bytes < total(2, kTokens));
  const auto most_tokens = scene.choose();
  REQUIRE(most_tokens.ok());
  CHECK(most_tokens->plan == 2);
  CHECK(most_tokens->tokens_kept >= 180);
  CHECK(most_tokens->tokens_kept < kTokens);
  CHECK(total(2, most_tokens->tokens_kept) == most_tokens->bytes.total);
  CHECK(total(2, most_tokens->tokens_kept + 1) > scene.wish.budget_bytes);
  // With fewer tokens more bits fit.
  scene.wish.lowest_keep_ratio = 0.1;
  const auto more_bits = scene.choose();
  REQUIRE(more_bits.ok());
  CHECK(more_bits->plan < 2);
  CHECK(more_bits->tokens_kept < most_tokens->tokens_kept);
  CHECK(more_bits->keep_ratio >= 0.1);
  CHECK(more_bits->expected_cost < most_tokens->expected_cost);
  CHECK(more_bits->bytes.total <= scene.wish.budget_bytes);
  // A ratio that no plan reaches leaves the plan with the fewest bits.
  scene.wish.lowest_keep_ratio = 1.0;
  CHECK(scene.choose()->plan == 2);
  scene.wish.budget_bytes = total(2, 9) / 2;
  CHECK(argument_of(scene.choose().status()) == "wish.budget_bytes");
}

TEST_CASE("wishes for size and for cost") {
  Scene scene;
  scene.wish.ratio = 5.0;
  CHECK(scene.choose()->plan == 1);
  scene.wish.ratio = 0.0;
  scene.wish.bytes_per_token = static_cast<double>(bytes_per_token(*scene.profile, scene.profile->plans[2]));
  CHECK(scene.choose()->plan == 2);
  scene.wish.bytes_per_token = 0.0;
  // With a bound on the cost the smallest plan within it.
  scene.wish.highest_cost = scene.cost(1);
  CHECK(scene.choose()->plan == 1);
  scene.wish.highest_cost = 1.01 * scene.cost(2);
  CHECK(scene.choose()->plan == 2);
  // The budget holds only the smallest, which costs too much: the next one, with a share of the prompt.
  scene.wish.highest_cost = scene.cost(1);
  scene.wish.budget_bytes = scene.total(2);
  const auto choice = scene.choose();
  CHECK(choice->plan == 1);
  CHECK(choice->keep_ratio < 1.0);
  CHECK(holds(choice->explanation, "cost too high"));
}

TEST_CASE("a bound on the divergence that was measured on held-out text") {
  Scene scene;
  Profile measured = *scene.profile;
  measured = record_divergence(measured, "3x", 0.001, 100).value();
  measured = record_divergence(measured, "12x", 0.1, 100).value();
  scene.profile = std::make_shared<const Profile>(std::move(measured));
  scene.wish.highest_divergence = 0.1;
  CHECK(scene.choose()->plan == 2);
  scene.wish.highest_divergence = 0.099;  // 8x was not measured
  const auto choice = scene.choose();
  CHECK(choice->plan == 0);
  CHECK(holds(choice->explanation, "not measured"));
  scene.wish.highest_divergence = 0.0005;
  const Status status = scene.choose().status();
  CHECK(argument_of(status) == "wish.highest_divergence");
  CHECK_MESSAGE(holds(std::string(status.message()), "3x is nearest"), status.message());
}

TEST_CASE("wishes that cannot be had are named, with what is missing") {
  Scene scene;
  const auto refused = [&](const std::string& argument, const std::string& words) {
    const Status status = scene.choose().status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(argument_of(status) == argument);
    CHECK_MESSAGE(holds(std::string(status.message()), words), status.message());
  };
  const double full = static_cast<double>(full_bytes_per_token(*scene.profile));
  const auto smallest = static_cast<double>(bytes_per_token(*scene.profile, scene.profile->plans[2]));
  scene.wish.ratio = 2.0 * full / smallest;
  refused("wish.ratio", "12x is nearest");
  refused("wish.ratio", "off by a factor of 2");
  scene.wish.ratio = 0.0;
  scene.wish.bytes_per_token = smallest / 4.0;
  refused("wish.bytes_per_token", "off by a factor of 4");
  scene.wish.bytes_per_token = 0.0;
  scene.wish.highest_cost = scene.cost(0) / 8.0;
  refused("wish.highest_cost", "3x is nearest");
  // Each can be had, not both.
  scene.wish.highest_cost = scene.cost(0);
  scene.wish.ratio = 5.0;
  refused("wish.highest_cost", "of the plans that fulfil ratio 8x is nearest");
  scene.wish = {};
  scene.wish.sequences = 2147483647;
  scene.wish.life.prompt_tokens = 1 << 25;
  scene.wish.budget_bytes = 1 << 20;
  scene.wish.life.policy.recent_tokens = 1 << 25;  // all exact
  CHECK(argument_of(scene.choose().status()) == "wish.sequences");
}

}  // namespace
}  // namespace foldkv::test
