#include <algorithm>
#include <cstring>
#include <set>

#include "tests/runtime/cache/snapshot/snapshot_scene.h"

namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 140;

// Some policies look at output weights.
ToyShape with_weights() {
  ToyShape shape;
  shape.hidden = 12;
  return shape;
}

LayerOutputs feed(const RestorePlace& place, const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens,
                  int64_t first, int64_t count, bool continues = false) {
  return run_step(place.runtime, *place.host, {{sequence, &tokens, first, count, continues, {}}});
}

TEST_CASE("a restored sequence holds the same bytes and goes on alike, on every backend") {
  const ToyHost host{with_weights()};
  const ToyTokens tokens = host.tokens(kPrompt + 100, 1);
  for (const Holding& holding : all_holdings(host)) {
    CAPTURE(holding.name);
    for (const std::string& backend : backend_names()) {
      const RestorePlace here{open_runtime({backend, 2}), &host, holding.profile};
      for (const bool prompt_open : {true, false}) {
        const auto sequence = make_sequence(here.runtime, host, holding.profile, holding.policy);
        (void)feed(here, sequence, tokens, 0, 100, true);
        (void)feed(here, sequence, tokens, 100, kPrompt - 100, prompt_open);
        const Bytes bytes = saved({sequence});
        for (const std::string& other : backend_names()) {
          const RestorePlace there{open_runtime({other, 1}), &host, holding.profile};
          const auto again = restored(there, bytes).front();
          CHECK(again->next_position() == sequence->next_position());
          CHECK(again->ledger().total() == sequence->ledger().total());
          CHECK(saved({again}) == bytes);
          if (other != backend) continue;
          CHECK(all_held(*again) == all_held(*sequence));
          const auto original = sequence->fork().value();
          for (int64_t token = kPrompt; token < kPrompt + 70; ++token) {
            CHECK(feed(there, again, tokens, token, 1) == feed(here, original, tokens, token, 1));
          }
          CHECK(all_held(*again) == all_held(*original));
        }
      }
    }
  }
}

TEST_CASE("an empty sequence, one cut to nothing and one without latents yet are saved too") {
  const ToyHost host{ToyShape{}};
  const RestorePlace place{open_runtime({}), &host, calibrate(open_runtime({}), host, {2, 4, 0, 16, 2})};
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  for (const int64_t left : {-1, 0, 3, 30}) {
    const auto sequence = make_sequence(place.runtime, host, place.profile);
    if (left >= 0) {
      (void)feed(place, sequence, tokens, 0, kPrompt);
      REQUIRE(sequence->truncate(left).ok());
    }
    const auto again = restored(place, saved({sequence})).front();
    CHECK(again->storage().token_count() == std::max<int64_t>(left, 0));
    CHECK(feed(place, again, tokens, 0, 100) == feed(place, sequence, tokens, 0, 100));
    CHECK(all_held(*again) == all_held(*sequence));
  }
}

TEST_CASE("sequences saved together share pages in the file and in memory") {
  const ToyHost host{ToyShape{}};
  const RestorePlace place{open_runtime({}), &host, calibrate(open_runtime({}), host, {2, 4, 0, 16, 2})};
  const ToyTokens tokens = host.tokens(600, 1);
  const auto first = make_sequence(place.runtime, host, place.profile);
  (void)feed(place, first, tokens, 0, 500);
  Sequences family = {first};
  for (int64_t fork = 0; fork < 9; ++fork) {
    family.push_back(first->fork().value());
    (void)feed(place, family.back(), tokens, 500 + fork, 1);
  }
  const size_t one = saved({first}).size();
  const Bytes bytes = saved(family);
  CHECK(bytes.size() < 2 * one);
  const int64_t used = place.runtime->arena().stats().ledger.total();
  const RestorePlace there{open_runtime({}), &host, place.profile};
  const Sequences again = restored(there, bytes, 10);
  REQUIRE(again.size() == 10);
  CHECK(there.runtime->arena().stats().ledger.total() == used);
  for (size_t index = 0; index < again.size(); ++index) CHECK(all_held(*again[index]) == all_held(*family[index]));
  CHECK(again[3]->shared_bytes() == family[3]->shared_bytes());
  CHECK(feed(there, again[4], tokens, 550, 1) == feed(place, family[4], tokens, 550, 1));
  CHECK(all_held(*again[0]) == all_held(*first));
}

TEST_CASE("compressed snapshots are smaller and hold the same") {
  const ToyHost host{ToyShape{}};
  const RestorePlace place{open_runtime({}), &host, nullptr};
  // Numbers that repeat, so that there is something to compress.
  ToyTokens tokens = host.tokens(kPrompt, 1);
  for (auto* rows : {&tokens.key, &tokens.value}) {
    for (std::vector<float>& layer : *rows) std::fill(layer.begin() + std::ssize(layer) / 2, layer.end(), 0.5F);
  }
  const auto sequence = make_sequence(place.runtime, host, nullptr);
  (void)feed(place, sequence, tokens, 0, kPrompt);
  const Bytes plain = saved({sequence});
  for (const int32_t level : {1, 3, 19}) {
    const Bytes bytes = saved({sequence}, saving(level));
    CHECK(bytes.size() < plain.size() * 3 / 4);
    CHECK(saved({restored(place, bytes).front()}) == plain);
  }
}

TEST_CASE("a snapshot says nothing of what lay in the memory before") {
  const ToyHost host{with_weights()};
  const ToyTokens tokens = host.tokens(kPrompt + 3, 1);
  const ToyTokens others = host.tokens(kPrompt + 60, 2);
  for (const Holding& holding : all_holdings(host)) {
    CAPTURE(holding.name);
    std::set<Bytes> snapshots;
    for (const bool dirty : {false, true}) {
      const RestorePlace place{open_runtime({"cpu", 1, false, 8 << 20}), &host, holding.profile};
      if (dirty) {
        auto block = Block::allocate(place.runtime->arena(), Role::kModel, 6 << 20);
        REQUIRE(block.ok());
        std::memset(block->data(), 0x5A, 6 << 20);
      }
      const auto sequence = make_sequence(place.runtime, host, holding.profile, holding.policy);
      (void)feed(place, sequence, tokens, 0, kPrompt, true);
      if (dirty && holding.policy.eviction == nullptr) {
        // What was cut off is not told either; eviction policies keep what they have seen of it.
        (void)feed(place, sequence, others, 0, 30, true);
        REQUIRE(sequence->truncate(kPrompt).ok());
      }
      (void)feed(place, sequence, tokens, kPrompt, 3);
      snapshots.insert(saved({sequence}));
    }
    CHECK(snapshots.size() == 1);
  }
}

// A small one, whose every byte can be tried.
struct SmallSnapshot {
  ToyShape shape{2, 2, 1, 4};
  ToyHost host{shape};
  std::shared_ptr<const Profile> profile;
  RestorePlace place;
  Bytes bytes;

  explicit SmallSnapshot(int32_t compression) {
    auto made = make_codec_profile(*host.model(), {CodecName::kInteger});
    REQUIRE(made.ok());
    profile = std::make_shared<const Profile>(*std::move(made));
    place = {open_runtime({}), &host, profile};
    SequencePolicy policy;
    policy.sink_tokens = 1;
    policy.recent_tokens = 3;
    const ToyTokens tokens = host.tokens(30, 1);
    const auto sequence = make_sequence(place.runtime, host, profile, policy);
    (void)feed(place, sequence, tokens, 0, 30);
    REQUIRE(sequence->storage().latent_tokens() == 26);
    bytes = saved({sequence}, saving(compression));
  }
};

TEST_CASE("a snapshot with any byte changed is refused, and nothing else has changed") {
  for (const int32_t compression : {0, 5}) {
    const SmallSnapshot small(compression);
    const ToyTokens tokens = small.host.tokens(20, 2);
    const auto neighbour = make_sequence(small.place.runtime, small.host, small.profile);
    (void)feed(small.place, neighbour, tokens, 0, 20);
    const std::vector<float> held = all_held(*neighbour);
    const int64_t used = small.place.runtime->arena().stats().ledger.total();
    for (size_t place = 0; place < small.bytes.size(); ++place) {
      for (const int flip : {0x01, 0x80, 0xFF}) {
        Bytes changed = small.bytes;
        changed[place] ^= static_cast<std::byte>(flip);
        const auto result = try_restore(small.place, changed);
        CAPTURE(place);
        REQUIRE_FALSE(result.ok());
        const bool told = result.status().code() == absl::StatusCode::kDataLoss ||
                          result.status().code() == absl::StatusCode::kOutOfRange;
        REQUIRE(told);
      }
    }
    CHECK(small.place.runtime->arena().stats().ledger.total() == used);
    CHECK(small.place.runtime->sequence_count() == 1);
    CHECK(all_held(*neighbour) == held);
    CHECK(try_restore(small.place, small.bytes).ok());
  }
}

TEST_CASE("a snapshot cut anywhere, or with something behind it, is refused") {
  const SmallSnapshot small(0);
  for (size_t size = 0; size < small.bytes.size(); ++size) {
    const auto result = try_restore(small.place, std::span(small.bytes).first(size));
    REQUIRE(result.status().code() == absl::StatusCode::kDataLoss);
  }
  Bytes longer = small.bytes;
  longer.push_back(std::byte{0});
  CHECK(try_restore(small.place, longer).status().code() == absl::StatusCode::kDataLoss);
  CHECK(small.place.runtime->sequence_count() == 0);
  CHECK(small.place.runtime->arena().stats().ledger.total() == 0);
}

TEST_CASE("a snapshot of another model, profile or plan is refused by name") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const RestorePlace place{runtime, &host, profile};
  const auto sequence = make_sequence(runtime, host, profile);
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  (void)feed(place, sequence, tokens, 0, kPrompt);
  const Bytes bytes = saved({sequence});
  const auto refused = [&](const RestorePlace& other, const char* argument, const RestoreOptions& options = {}) {
    const auto result = try_restore(other, bytes, options);
    CHECK(result.status().code() == absl::StatusCode::kAborted);
    CHECK(argument_of(result.status()) == argument);
  };
  ToyShape capped;
  capped.soft_cap = 30.0;
  const ToyHost other_host(capped);
  refused({runtime, &other_host, nullptr}, "model");
  refused({runtime, &host, calibrate(runtime, host, {2, 4, 0, 16, 3})}, "profile");
  refused({runtime, &host, nullptr}, "profile");
  RestoreOptions wants_plan;
  wants_plan.plan = "tight";
  refused(place, "options.plan", wants_plan);
  // The same bases with another plan, and with one more.
  Profile other = *profile;
  other.plans[0].groups[0].keys[0].bits = 2;
  REQUIRE(finish_profile(other).ok());
  refused({runtime, &host, std::make_shared<const Profile>(other)}, "profile");
  Profile more = *profile;
  more.plans.push_back(more.plans[0]);
  more.plans[0].name = "first";
  REQUIRE(finish_profile(more).ok());
  CHECK(try_restore({runtime, &host, std::make_shared<const Profile>(more)}, bytes).ok());
  // Without a profile, for a model with one.
  const Bytes exact = saved({make_sequence(runtime, host, nullptr)});
  const auto result = try_restore(place, exact);
  CHECK(result.status().code() == absl::StatusCode::kAborted);
  CHECK(argument_of(result.status()) == "profile");
}

TEST_CASE("what does not fit is refused and leaves nothing behind") {
  const ToyHost host{ToyShape{}};
  const RestorePlace place{open_runtime({}), &host, nullptr};
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  const auto sequence = make_sequence(place.runtime, host, nullptr);
  (void)feed(place, sequence, tokens, 0, kPrompt);
  const Bytes bytes = saved({sequence, sequence->fork().value()});
  const auto narrow = try_restore(place, bytes);
  CHECK(narrow.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(argument_of(narrow.status()) == "capacity");
  for (int64_t budget = 4096; budget < 200'000; budget += 8192) {
    const RestorePlace small{open_runtime({"cpu", 1, false, budget}), &host, nullptr};
    RestoreOptions options;
    options.capacity = 2;
    const auto result = try_restore(small, bytes, options);
    if (result.ok()) break;
    CHECK(result.status().code() == absl::StatusCode::kResourceExhausted);
    CHECK(small.runtime->arena().stats().ledger.total() == 0);
    CHECK(small.runtime->sequence_count() == 0);
  }
}

TEST_CASE("free memory in pieces is as good as free memory in one") {
  const ToyHost host{ToyShape{}};
  const RestorePlace place{open_runtime({"cpu", 1, false, 600'000}), &host, nullptr};
  const ToyTokens tokens = host.tokens(kPrompt, 1);
  Bytes bytes;
  const auto keeper = make_sequence(place.runtime, host, nullptr);  // of what the model needs, which is in one piece
  {
    const auto sequence = make_sequence(place.runtime, host, nullptr);
    (void)feed(place, sequence, tokens, 0, kPrompt);
    bytes = saved({sequence});
  }
  std::vector<Block> fillers;
  while (true) {
    auto filler = Block::allocate(place.runtime->arena(), Role::kModel, 2048);
    if (!filler.ok()) break;
    fillers.push_back(*std::move(filler));
  }
  for (size_t index = 0; index < fillers.size(); index += 2) fillers[index].reset();
  CHECK(place.runtime->arena().stats().largest_free < 8192);
  CHECK(restored(place, bytes).front()->storage().token_count() == kPrompt);
}

TEST_CASE("a host's failing or cancelling stops saving and restoring") {
  const SmallSnapshot small(0);
  const auto sequence = restored(small.place, small.bytes).front();
  const std::vector<float> held = all_held(*sequence);
  for (size_t limit = 0; limit < small.bytes.size(); limit += 97) {
    size_t written = 0;
    const Sequences one = {sequence};
    const Status status = save_sequences(one, saving(), [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      return written > limit ? file_error(28, "no space") : absl::OkStatus();
    });
    CHECK(status.code() == absl::StatusCode::kNotFound);
    CHECK(native_code_of(status) == 28);
  }
  CHECK(all_held(*sequence) == held);
  const int32_t flag = 1;
  SaveOptions stopped = saving();
  stopped.cancellation = Cancellation(&flag);
  CHECK(try_save({sequence}, stopped).status().code() == absl::StatusCode::kDeadlineExceeded);
  RestoreOptions never;
  never.cancellation = Cancellation(&flag);
  CHECK(try_restore(small.place, small.bytes, never).status().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(small.place.runtime->sequence_count() == 1);
}

TEST_CASE("what may not be saved together, or now, is refused") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto exact = make_sequence(runtime, host, nullptr);
  const auto learned = make_sequence(runtime, host, calibrate(runtime, host, {2, 4, 0, 16, 2}));
  CHECK(try_save({}).status().code() == absl::StatusCode::kInvalidArgument);
  const auto mixed = try_save({exact, learned});
  CHECK(mixed.status().code() == absl::StatusCode::kAborted);
  CHECK(argument_of(mixed.status()) == "sequences[1]");
  const auto step = Step::begin(runtime, {{exact, 1, {}, false}}, {});
  REQUIRE(step.ok());
  CHECK(try_save({exact}).status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace foldkv::test
