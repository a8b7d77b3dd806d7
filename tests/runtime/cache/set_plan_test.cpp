#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/codec_profile.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 300;

// A calibrated profile with a plan of 8 bits and one of 4, on the same bases.
std::shared_ptr<const Profile> two_plans(const ToyHost& host, int32_t correction_rank) {
  Profile profile = *calibrate(open_runtime({}), host, {2, 8, 0, 16, correction_rank});
  profile.plans.push_back(profile.plans[0]);
  profile.plans[1].name = "small";
  for (GroupPlan& group : profile.plans[1].groups) {
    for (std::vector<Band>* bands : {&group.keys, &group.values}) {
      for (Band& band : *bands) band.bits = 4;
    }
  }
  REQUIRE(finish_profile(profile).ok());
  return std::make_shared<const Profile>(std::move(profile));
}

double mean_square(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum / static_cast<double>(a.size());
}

TEST_CASE("latents under another plan are nearly those of a sequence that had it from the start") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(kPrompt + 80, 1);
  for (const int32_t rank : {0, 2}) {
    const auto profile = two_plans(host, rank);
    for (const std::string& backend : backend_names()) {
      const auto runtime = open_runtime({backend, 2});
      const auto large = make_sequence(runtime, host, profile);
      SequencePolicy policy;
      policy.plan = 1;
      const auto small = make_sequence(runtime, host, profile, policy);
      const auto exact = make_sequence(runtime, host, nullptr);
      for (const auto& sequence : {large, small, exact}) {
        (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
      }
      const auto fork = large->fork().value();
      const std::vector<float> before = everything(*large);
      const Reclaimable promised = large->reclaimable();
      const int64_t bytes = runtime->arena().stats().ledger.total();
      REQUIRE(large->set_plan(1).ok());
      CHECK(large->policy().plan == 1);
      CHECK(large->ledger().total() == small->ledger().total());
      CHECK(promised.smallest_plan == 1);
      CHECK(promised.plan == 0);  // the fork has all pages still
      CHECK(runtime->arena().stats().ledger.total() > bytes);
      CHECK(everything(*fork) == before);
      const std::vector<float> truth = everything(*exact);
      const double fresh = mean_square(everything(*small), truth);
      const double again = mean_square(everything(*large), truth);
      CHECK(fresh > 1.5 * mean_square(before, truth));
      CHECK(again < 1.1 * fresh);
      // Both go on.
      for (int64_t token = kPrompt; token < kPrompt + 80; ++token) {
        (void)run_step(runtime, host, {{large, &tokens, token, 1, false, {}}, {fork, &tokens, token, 1, false, {}}});
      }
      CHECK(large->storage().latent_tokens() > kPrompt - 68);
      CHECK(large->ledger().total() < fork->ledger().total());
    }
  }
}

TEST_CASE("what another plan brings and takes is told before") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto profile = two_plans(host, 0);
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
  const Reclaimable promised = sequence->reclaimable();
  const int64_t before = runtime->arena().stats().ledger.total();
  CHECK(promised.release == sequence->ledger().total());
  CHECK(promised.compress == 0);
  REQUIRE(sequence->set_plan(promised.smallest_plan).ok());
  CHECK(runtime->arena().stats().ledger.total() == before - promised.plan);
  CHECK(sequence->reclaimable().plan == 0);
  CHECK(sequence->set_plan(1).ok());  // as it is
  // An open prompt may be compressed; how much that frees is told to the byte.
  const auto prompt = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{prompt, &tokens, 0, kPrompt, true, {}}});
  const int64_t exact = prompt->ledger().total();
  const int64_t compress = prompt->reclaimable().compress;
  REQUIRE(prompt->compress().ok());
  // Less the means, which come with the first run.
  CHECK(exact - prompt->ledger().total() == compress - prompt->ledger().of(Role::kMean));
}

TEST_CASE("a plan that finds no room, or that is not there, changes nothing") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto profile = two_plans(host, 2);
  const auto runtime = open_runtime({"cpu", 1, false, 1'000'000});
  const auto sequence = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
  const std::vector<float> held = everything(*sequence);
  {
    std::vector<Block> fillers;
    while (true) {
      auto filler = Block::allocate(runtime->arena(), Role::kModel, 2048);
      if (!filler.ok()) break;
      fillers.push_back(*std::move(filler));
    }
    const int64_t filled = runtime->arena().stats().ledger.total();
    CHECK(sequence->set_plan(1).code() == absl::StatusCode::kResourceExhausted);
    CHECK(runtime->arena().stats().ledger.total() == filled);
  }
  CHECK(sequence->policy().plan == 0);
  CHECK(everything(*sequence) == held);
  CHECK(make_sequence(runtime, host, nullptr)->set_plan(0).code() == absl::StatusCode::kFailedPrecondition);
  const auto step = Step::begin(runtime, {{sequence, 1, {}, false}}, {});
  REQUIRE(step.ok());
  CHECK(sequence->set_plan(1).code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace foldkv::test
