#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/codec_profile.h"
#include "tests/runtime/cache/eviction_scene.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

constexpr int64_t kTokens = 200;

LayerOutputs feed(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                  const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens, int64_t first, int64_t count,
                  bool continues = false) {
  return run_step(runtime, host, {{sequence, &tokens, first, count, continues, {}}});
}

std::vector<int32_t> first_positions(int64_t count) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

TEST_CASE("an exact sequence cut anywhere goes on as if the rest had never been fed, bit for bit") {
  ToyShape windowed;
  windowed.window = 24;
  const ToyHost host{windowed};
  const ToyTokens tokens = host.tokens(kTokens, 1);
  const ToyTokens others = host.tokens(20, 2);
  for (const std::string& name : backend_names()) {
    const auto runtime = open_runtime({name, 1});
    for (const int64_t left : {199, 68, 33, 32, 16, 1, 0}) {
      const auto cut = make_sequence(runtime, host, nullptr);
      (void)feed(runtime, host, cut, tokens, 0, kTokens);
      const ArenaStats before = runtime->arena().stats();
      REQUIRE(cut->truncate(left).ok());
      CHECK(runtime->arena().stats().ledger.total() <= before.ledger.total());
      CHECK(runtime->arena().stats().peak == before.peak);  // it takes no memory, whatever the length
      const auto straight = make_sequence(runtime, host, nullptr);
      if (left > 0) (void)feed(runtime, host, straight, tokens, 0, left);
      CHECK(cut->next_position() == left);
      CHECK(cut->storage().token_count() == left);
      CHECK(cut->positions().value() == first_positions(left));
      CHECK(cut->ledger().total() == straight->ledger().total());
      CHECK(feed(runtime, host, cut, others, 0, 20) == feed(runtime, host, straight, others, 0, 20));
    }
  }
}

TEST_CASE("a cut into latents leaves those before it as they were") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kTokens, 1);
  const auto sequence = make_sequence(runtime, host, profile);
  (void)feed(runtime, host, sequence, tokens, 0, kTokens);
  const std::vector<float> keys = rebuilt(*sequence, 1, backend::Side::kKeys);
  for (const int64_t left : {150, 100, 33, 5}) {
    REQUIRE(sequence->truncate(left).ok());
    CHECK(sequence->storage().latent_tokens() == std::min<int64_t>(left, kTokens - 64) - 4);
    CHECK(sequence->positions().value() == first_positions(left));
    const std::vector<float> kept = rebuilt(*sequence, 1, backend::Side::kKeys);
    CHECK(std::equal(kept.begin(), kept.end(), keys.begin()));
  }
  // No latent is left: means are found anew, as in a new sequence.
  for (const int64_t left : {4, 2, 0}) {
    REQUIRE(sequence->truncate(left).ok());
    CHECK_FALSE(sequence->storage().has_latents());
    const auto straight = make_sequence(runtime, host, profile);
    if (left > 0) (void)feed(runtime, host, straight, tokens, 0, left, true);
    const auto again = sequence->fork().value();
    CHECK(feed(runtime, host, again, tokens, left, 120) == feed(runtime, host, straight, tokens, left, 120));
    CHECK(everything(*again) == everything(*straight));
    CHECK(again->ledger().total() == straight->ledger().total());
  }
}

TEST_CASE("drafts that are rejected leave no trace") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kTokens, 1);
  const ToyTokens drafts = host.tokens(8, 2);
  const auto speculating = make_sequence(runtime, host, profile);
  const auto straight = make_sequence(runtime, host, profile);
  for (const auto& sequence : {speculating, straight}) (void)feed(runtime, host, sequence, tokens, 0, 100);
  for (int64_t token = 100; token < kTokens - 8; ++token) {
    // No fold happens on the way: it would come some drafts earlier than in the straight run.
    if (straight->storage().grouped_exact_tokens() + 9 < 4 + 64 + 64) {
      (void)feed(runtime, host, speculating, drafts, 0, 8);
      REQUIRE(speculating->truncate(token).ok());
    }
    CHECK(feed(runtime, host, speculating, tokens, token, 1) == feed(runtime, host, straight, tokens, token, 1));
  }
  CHECK(everything(*speculating) == everything(*straight));
}

TEST_CASE("a prefix goes on under another suffix in a fork, and the original is as it was") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(kTokens, 1);
  const ToyTokens suffix = host.tokens(90, 2);
  const auto original = make_sequence(runtime, host, profile);
  (void)feed(runtime, host, original, tokens, 0, kTokens, true);
  const std::vector<float> held = everything(*original);
  const auto other = original->fork().value();
  REQUIRE(other->truncate(110).ok());
  const auto alone = make_sequence(runtime, host, profile);
  (void)feed(runtime, host, alone, tokens, 0, 110, true);
  CHECK(feed(runtime, host, other, suffix, 0, 90) == feed(runtime, host, alone, suffix, 0, 90));
  CHECK(everything(*other) == everything(*alone));
  CHECK(everything(*original) == held);
}

TEST_CASE("positions that jump are cut by position, not by number") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(6, 1);
  const auto sequence = make_sequence(runtime, host, nullptr);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 6, false, {0, 1, 10, 11, 50, 51}}});
  REQUIRE(sequence->truncate(30).ok());
  CHECK(sequence->positions().value() == std::vector<int32_t>{0, 1, 10, 11});
  CHECK(sequence->next_position() == 30);
  REQUIRE(sequence->truncate(11).ok());
  CHECK(sequence->positions().value() == std::vector<int32_t>{0, 1, 10});
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 1, false, {}}});
  CHECK(sequence->positions().value() == std::vector<int32_t>{0, 1, 10, 11});
}

TEST_CASE("a run whose tokens share scales is cut too: what is left of it becomes exact") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(kTokens, 1);
  auto made = make_codec_profile(*host.model(), CodecWish{CodecName::kKivi, 4});
  REQUIRE(made.ok());
  const auto profile = std::make_shared<const Profile>(*std::move(made));
  for (const int64_t left : {199, 110, 100, 69, 68, 40, 36, 5, 2}) {
    const auto sequence = make_sequence(runtime, host, profile);
    (void)feed(runtime, host, sequence, tokens, 0, kTokens);
    const int64_t latents = sequence->storage().latent_tokens();
    REQUIRE(latents % 32 == 0);
    REQUIRE(latents > 64);
    const std::vector<float> all = everything(*sequence);
    const auto fork = sequence->fork().value();
    REQUIRE(sequence->truncate(left).ok());
    CHECK(sequence->positions().value() == first_positions(left));
    CHECK(sequence->storage().latent_tokens() == std::min(latents, std::max<int64_t>(0, left - 4) / 32 * 32));
    CHECK(sequence->storage().token_count() == left);
    for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
      const std::vector<float> kept = rebuilt(*sequence, layer, backend::Side::kValues);
      const std::vector<float> before = rebuilt(*fork, layer, backend::Side::kValues);
      // Exact numbers are halves.
      for (size_t number = 0; number < kept.size(); ++number) {
        REQUIRE(kept[number] == doctest::Approx(before[number]).epsilon(1e-3));
      }
    }
    CHECK(everything(*fork) == all);
    (void)feed(runtime, host, sequence, tokens, left, kTokens - left);
    CHECK(sequence->positions().value() == first_positions(kTokens));
  }
  CHECK(runtime->sequence_count() == 0);
}

TEST_CASE("what an eviction dropped does not come back: no cut below it") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(kTokens, 1);
  const auto sequence =
      make_sequence(runtime, host, nullptr, evicting(small_policy("snapkv", 80, host.shape().layers)));
  (void)feed(runtime, host, sequence, tokens, 0, 150);
  CHECK(sequence->lowest_truncation() == 150);
  (void)feed(runtime, host, sequence, tokens, 150, 20);
  const std::vector<int32_t> held = sequence->positions(0, 0).value();
  const Status refused = sequence->truncate(149);
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(argument_of(refused) == "position");
  CHECK(sequence->positions(0, 0).value() == held);
  CHECK(sequence->next_position() == 170);
  REQUIRE(sequence->truncate(155).ok());
  CHECK(sequence->storage().token_count() == 155);
  const std::vector<int32_t> left = sequence->positions(0, 0).value();
  CHECK(std::ssize(left) == std::ssize(held) - 15);
  CHECK(left.back() == 154);
}

TEST_CASE("a policy whose last queries were all truncated evicts nothing when it is asked to") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(kTokens, 1);
  for (const std::string& backend : backend_names()) {
    for (const char* name : {"snapkv", "tova", "cake", "h2o", "expected-attention"}) {
      const auto runtime = open_runtime({backend, 1});
      const auto sequence =
          make_sequence(runtime, host, nullptr, evicting(small_policy(name, 40, host.shape().layers)));
      (void)feed(runtime, host, sequence, tokens, 0, 150, true);
      REQUIRE(sequence->truncate(100).ok());
      CHECK(sequence->window().rows == 0);
      REQUIRE(sequence->compress().ok());
      const bool remembers = std::string(name) == "h2o" || std::string(name) == "expected-attention";
      CHECK((sequence->held_tokens(0, 0) == 100) == !remembers);
      (void)feed(runtime, host, sequence, tokens, 100, 5);
    }
  }
}

TEST_CASE("bad cuts are refused and change nothing") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const ToyTokens tokens = host.tokens(10, 1);
  const auto sequence = make_sequence(runtime, host, nullptr);
  CHECK(sequence->truncate(0).ok());
  (void)feed(runtime, host, sequence, tokens, 0, 10);
  for (const int64_t position : {int64_t{-1}, int64_t{11}, int64_t{1} << 40}) {
    const Status status = sequence->truncate(position);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(argument_of(status) == "position");
  }
  CHECK(sequence->truncate(10).ok());
  CHECK(sequence->storage().token_count() == 10);
  const auto step = Step::begin(runtime, {{sequence, 1, {}, false}}, {});
  REQUIRE(step.ok());
  CHECK(sequence->truncate(5).code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace foldkv::test
