#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/cache/eviction_scene.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kMore = 90;  // enough for a run of generated tokens to be folded

std::shared_ptr<Sequence> fork_of(const Sequence& sequence) {
  auto fork = sequence.fork();
  REQUIRE_MESSAGE(fork.ok(), std::string(fork.status().message()));
  return *std::move(fork);
}

std::vector<LayerOutputs> generate(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                   const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens) {
  std::vector<LayerOutputs> outputs;
  for (int64_t token = 0; token < kMore; ++token) {
    outputs.push_back(run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}}));
  }
  return outputs;
}

// A prompt and then `more`, in a sequence of its own.
std::vector<LayerOutputs> fed_alone(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                    const std::shared_ptr<const Profile>& profile, const ToyTokens& prompt,
                                    const ToyTokens& more) {
  const auto sequence = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{sequence, &prompt, 0, kPrompt, false, {}}});
  return generate(runtime, host, sequence, more);
}

TEST_CASE("a fork and its original go on as if each had been alone, bit for bit") {
  const ToyHost host{ToyShape{}};
  const ToyTokens prompt = host.tokens(kPrompt, 1);
  const ToyTokens left = host.tokens(kMore, 2);
  const ToyTokens right = host.tokens(kMore, 3);
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name, 2});
    ProfileChoice with_exact_layers{2, 4, 0, 16, 2};
    with_exact_layers.exact_layers = 2;
    const std::vector<std::shared_ptr<const Profile>> profiles = {nullptr, calibrate(runtime, host, {2, 4, 0, 16, 2}),
                                                                  calibrate(runtime, host, with_exact_layers)};
    for (const auto& profile : profiles) {
      const auto original = make_sequence(runtime, host, profile);
      (void)run_step(runtime, host, {{original, &prompt, 0, kPrompt, false, {}}});
      const auto fork = fork_of(*original);
      CHECK(everything(*fork) == everything(*original));
      CHECK(fork->positions().value() == original->positions().value());
      CHECK(generate(runtime, host, fork, left) == fed_alone(runtime, host, profile, prompt, left));
      CHECK(generate(runtime, host, original, right) == fed_alone(runtime, host, profile, prompt, right));
    }
  }
}

TEST_CASE("a prompt that goes on may be forked, and so may a sequence without tokens") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto empty = make_sequence(runtime, host, profile);
  const auto original = fork_of(*empty);
  (void)run_step(runtime, host, {{original, &tokens, 0, 100, true, {}}});
  const auto fork = fork_of(*original);
  (void)run_step(runtime, host, {{fork, &tokens, 100, 50, false, {}}});
  const auto whole = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{whole, &tokens, 0, kPrompt, false, {}}});
  CHECK(fork->storage().latent_tokens() > 0);
  CHECK(everything(*fork) == everything(*whole));
  CHECK(empty->storage().token_count() == 0);
  CHECK(original->storage().token_count() == 100);
}

TEST_CASE("a fork takes no bytes, and the ledger balances, whichever is released first") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  for (const bool original_first : {true, false}) {
    auto original = make_sequence(runtime, host, profile);
    (void)run_step(runtime, host, {{original, &tokens, 0, kPrompt, false, {}}});
    const int64_t one = runtime->arena().stats().ledger.total();
    CHECK(original->shared_bytes() == 0);
    auto fork = fork_of(*original);
    CHECK(runtime->arena().stats().ledger.total() == one);
    CHECK(fork->ledger().total() == original->ledger().total());
    CHECK(fork->shared_bytes() == fork->ledger().total());
    CHECK(runtime->sequence_count() == 2);
    const std::vector<float> held = everything(*fork);
    (original_first ? original : fork).reset();
    const auto& kept = original_first ? fork : original;
    CHECK(everything(*kept) == held);
    CHECK(kept->shared_bytes() == 0);
    CHECK(runtime->arena().stats().ledger.total() == one);
    (void)run_step(runtime, host, {{kept, &tokens, 0, 1, false, {}}});
  }
  CHECK(runtime->arena().stats().ledger.total() == 0);
}

TEST_CASE("a fork that writes takes copies of the pages that it writes to, and no more") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto original = make_sequence(runtime, host, nullptr);
  (void)run_step(runtime, host, {{original, &tokens, 0, 100, false, {}}});
  const auto fork = fork_of(*original);
  const int64_t one = runtime->arena().stats().ledger.total();
  (void)run_step(runtime, host, {{fork, &tokens, 100, 1, false, {}}});
  // 100 tokens end in a page of 16 that is not full: the last page of every plane, and of the positions.
  int64_t page = block_bytes(fork->storage().exact_sets().front().tokens.page_bytes());
  for (const ExactPlane& plane : fork->storage().planes()) page += block_bytes(plane.pages.page_bytes());
  CHECK(runtime->arena().stats().ledger.total() == one + page);
  CHECK(fork->shared_bytes() == fork->ledger().total() - page);
  // The original's last pages are its own again, and are written in place.
  (void)run_step(runtime, host, {{original, &tokens, 100, 1, false, {}}});
  CHECK(runtime->arena().stats().ledger.total() == one + page);
}

TEST_CASE("a step that is rolled back leaves a fork with the shared pages that it had") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  auto original = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{original, &tokens, 0, 120, false, {}}});
  const auto fork = fork_of(*original);
  const std::vector<float> held = everything(*fork);
  const int64_t one = runtime->arena().stats().ledger.total();
  {
    const auto step = Step::begin(runtime, {{fork, 80, {}, false}}, {});
    REQUIRE(step.ok());
    original.reset();  // the step still has the pages that it took copies of
  }
  CHECK(runtime->arena().stats().ledger.total() == one);
  CHECK(everything(*fork) == held);
}

TEST_CASE("a step that finds no room for copies changes nothing, whatever part of it did not fit") {
  const ToyHost host{ToyShape{}};
  const auto profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto runtime = open_runtime({"cpu", 1, false, 700'000});
  const auto original = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{original, &tokens, 0, kPrompt, true, {}}});
  const auto fork = fork_of(*original);
  const std::vector<float> held = everything(*original);
  // The rest of the arena is taken, and given back little by little until the copies fit.
  std::vector<Block> fillers;
  while (true) {
    auto filler = Block::allocate(runtime->arena(), Role::kModel, 1024);
    if (!filler.ok()) break;
    fillers.push_back(*std::move(filler));
  }
  int64_t refused = 0;
  for (; !fillers.empty(); fillers.pop_back()) {
    const Ledger before = runtime->arena().stats().ledger;
    const Status status = fork->compress();
    if (status.ok()) break;
    ++refused;
    CHECK(status.code() == absl::StatusCode::kResourceExhausted);
    CHECK(fork->shared_bytes() == fork->ledger().total());
    for (size_t role = 0; role < kRoleCount; ++role) {
      CHECK(runtime->arena().stats().ledger.of(static_cast<Role>(role)) == before.of(static_cast<Role>(role)));
    }
  }
  CHECK(refused >= 10);
  CHECK_FALSE(fillers.empty());
  fillers.clear();  // rebuilding needs scratch
  CHECK(fork->storage().latent_tokens() > 0);
  CHECK(everything(*original) == held);
}

TEST_CASE("a thousand forks of a long prompt take no more than one") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(8192, 1);
  const auto original = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{original, &tokens, 0, 8192, false, {}}});
  const Ledger one = runtime->arena().stats().ledger;
  std::vector<std::shared_ptr<Sequence>> forks;
  for (int64_t fork = 0; fork < 1000; ++fork) forks.push_back(fork_of(*original));
  CHECK(runtime->arena().stats().ledger.total() == one.total());
  CHECK(runtime->sequence_count() == 1001);
  // Each goes its own way, and takes its last pages only.
  (void)run_step(runtime, host, {{forks[500], &tokens, 0, 1, false, {}}, {forks[501], &tokens, 1, 1, false, {}}});
  CHECK(runtime->arena().stats().ledger.total() < one.total() * 102 / 100);
  forks.clear();
  CHECK(runtime->arena().stats().ledger.total() == one.total());
}

TEST_CASE("an eviction in a fork leaves the original as it was, and goes on when the original is gone") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens prompt = host.tokens(kPrompt, 1);
  const ToyTokens more = host.tokens(kMore, 2);
  for (const char* name : {"snapkv", "h2o", "bellowskv-evict", "streaming-llm-reindexed"}) {
    CAPTURE(name);
    for (const auto& used : {std::shared_ptr<const Profile>(), profile}) {
      EvictionPolicy policy = small_policy(name, 90, host.shape().layers);
      policy.selection.interval = policy.reduction.weighting == ValueWeighting::kNone ? 16 : 0;
      const SequencePolicy options = evicting(policy);
      auto original = make_sequence(runtime, host, used, options);
      (void)run_step(runtime, host, {{original, &prompt, 0, kPrompt, true, {}}});
      const auto fork = fork_of(*original);
      const std::vector<float> held = everything(*original);
      REQUIRE(fork->compress().ok());
      CHECK(fork->held_tokens(0, 0) < kPrompt);
      CHECK(everything(*original) == held);
      // Fed alone it would have gone the same way.
      const auto alone = make_sequence(runtime, host, used, options);
      (void)run_step(runtime, host, {{alone, &prompt, 0, kPrompt, true, {}}});
      REQUIRE(alone->compress().ok());
      original.reset();
      CHECK(generate(runtime, host, fork, more) == generate(runtime, host, alone, more));
    }
  }
}

TEST_CASE("a sequence in an open step is not forked") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr);
  {
    const auto step = Step::begin(runtime, {{sequence, 1, {}, false}}, {});
    REQUIRE(step.ok());
    const auto fork = sequence->fork();
    CHECK(fork.status().code() == absl::StatusCode::kFailedPrecondition);
    CHECK(argument_of(fork.status()) == "sequence");
  }
  CHECK(sequence->fork().ok());
}

}  // namespace
}  // namespace foldkv::test
