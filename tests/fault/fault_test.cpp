#include <array>
#include <memory>
#include <span>
#include <string>

#include "doctest/doctest.h"
#include "tests/fault/fault_points.h"
#include "tests/fault/life.h"
#include "tests/support/memory_block.h"

// Field report 115 and the promise of every call: on failure nothing has changed.
namespace foldkv::test {
namespace {

foldkv_status status_of(Fault kind) {
  switch (kind) {
    case Fault::kHeap: return FOLDKV_E_MEMORY;
    case Fault::kArena: return FOLDKV_E_BUDGET;
    case Fault::kCancel: return FOLDKV_E_CANCELLED;
    default: return FOLDKV_E_BACKEND;
  }
}

std::string name_of(const LifeChoice& choice) {
  return std::string(choice.backend) + " " + programs::name_of(choice.recipe) + " " +
         (choice.eviction == nullptr ? "all" : choice.eviction);
}

std::unique_ptr<Life> live_until(const LifeChoice& choice, size_t end) {
  auto life = std::make_unique<Life>(choice);
  for (size_t call = 0; call < end; ++call) {
    foldkv_error error = sized<foldkv_error>();
    REQUIRE_MESSAGE(life->calls()[call].run(&error) == FOLDKV_OK, life->calls()[call].name, ": ", error.argument, " ",
                    error.message);
  }
  return life;
}

// What is seen after each call of a life without faults.
struct Moment {
  std::vector<std::byte> state;
  std::vector<float> outputs;
  bool operator==(const Moment&) const = default;
};
Moment moment_of(const Life& life) { return {life.state(), life.outputs()}; }

std::vector<Moment> undisturbed(const LifeChoice& choice) {
  auto life = live_until(choice, 0);
  std::vector<Moment> moments;
  for (const Life::Call& call : life->calls()) {
    foldkv_error error = sized<foldkv_error>();
    REQUIRE_MESSAGE(call.run(&error) == FOLDKV_OK, call.name, " ", moments.size(), ": ", error.argument, " ",
                    error.message);
    moments.push_back(moment_of(*life));
  }
  CHECK(life->release_all() == 0);
  return moments;
}

struct Tally {
  int64_t failures = 0;
  int64_t absorbed = 0;  // calls that did without what failed
  int64_t lost = 0;      // left a sequence that can only be released
};

// Lets the first, second, third ... point of one call fail until it has no more of them. The call is then done.
void fail_everywhere(const LifeChoice& choice, Fault kind, bool lasting, size_t index, const Moment& expected,
                     std::unique_ptr<Life>& life, Tally& tally) {
  for (int64_t number = 1;; ++number) {
    const Life::Call& call = life->calls()[index];
    CAPTURE(index);
    CAPTURE(call.name);
    CAPTURE(number);
    const std::vector<std::byte> before = life->state();
    const bool spilled = life->has_spilled();
    foldkv_error error = sized<foldkv_error>();
    foldkv_status status = FOLDKV_OK;
    bool struck = false;
    {
      const ArmedFault armed({kind, number, lasting});
      status = call.run(&error);
      struck = ArmedFault::struck();
    }
    life->cancel(0);
    if (status != FOLDKV_OK) {
      REQUIRE(struck);
      REQUIRE_MESSAGE(status == status_of(kind), error.argument, " ", error.message);
      REQUIRE(error.status == status);
      REQUIRE(error.message[0] != 0);
      ++tally.failures;
      if (life->lost()) {
        // Tokens are moved in place, at the very end of a commit: when a device fails there nothing brings them back.
        REQUIRE((kind == Fault::kBackendBefore || kind == Fault::kBackendAfter));
        REQUIRE((call.name == "commit" || call.name == "compress" || call.name == "truncate"));
        REQUIRE(life->calls()[index].run(&error) == FOLDKV_E_STATE);
        ++tally.lost;
        REQUIRE(life->release_all() == 0);
        life = live_until(choice, index);
        continue;
      }
      if (life->state() == before) continue;
      // A call that fails may have brought sequences back from the file: the same ones, in another place.
      REQUIRE(spilled);
      REQUIRE(life->contents() == live_until(choice, index)->contents());
      life = live_until(choice, index);
      continue;
    }
    REQUIRE(moment_of(*life) == expected);
    if (!struck) return;
    ++tally.absorbed;
    life = live_until(choice, index);
  }
}

Tally live_with_faults(const LifeChoice& choice, Fault kind, bool lasting) {
  const std::string name = name_of(choice);
  CAPTURE(name);
  CAPTURE(static_cast<int>(kind));
  CAPTURE(lasting);
  const std::vector<Moment> expected = undisturbed(choice);
  const int64_t blocks = live_heap_blocks();
  Tally tally;
  {
    auto life = live_until(choice, 0);
    for (size_t index = 0; index < expected.size(); ++index) {
      fail_everywhere(choice, kind, lasting, index, expected[index], life, tally);
    }
    // Releases never fail, whatever does.
    const ArmedFault armed({kind, 1, true});
    const uint64_t left = life->release_all();
    CHECK((left == 0 || kind == Fault::kHeap));
  }
  // oneDNN leaks what it has when an allocation of its own fails.
  const bool foreign = kind == Fault::kHeap && choice.weights && std::string(choice.backend) == "cpu";
  if (!foreign) CHECK(live_heap_blocks() == blocks);
  MESSAGE(tally.failures, " failures, ", tally.absorbed, " absorbed, ", tally.lost, " lost");
  return tally;
}

// Between them: latents with correction, hidden states, plans, runs of tokens, every kind of eviction, bases of a
// sequence, merged layers, exact pages. Under a sanitizer the first ones have to do.
std::span<const LifeChoice> lives() {
  using programs::Recipe;
  static const std::array<LifeChoice, 9> all = {{
      {"cpu", 0, Recipe::kLearned, nullptr, true, false},
      {"cpu", 2, Recipe::kPlans, nullptr, false, false},
      {"cpu", 4, Recipe::kKivi2, nullptr, false, false},
      {"cpu", 0, Recipe::kLearned, "snapkv", false, false},
      {"cpu", 3, Recipe::kXkv4, nullptr, false, false},
      {"reference", 1, Recipe::kMiniCache, nullptr, true, false},
      {"reference", 6, Recipe::kExact, "h2o", false, false},
      {"cpu", 0, Recipe::kExact, "cake", false, false},
      {"cpu", 1, Recipe::kExact, "expected-attention", false, false},
  }};
  return std::span(all).first(FOLDKV_TEST_ASAN ? 4 : all.size());
}

TEST_CASE("every allocation of the host's memory fails in turn") {
  for (const LifeChoice& choice : lives()) CHECK(live_with_faults(choice, Fault::kHeap, false).failures > 100);
}

TEST_CASE("the host's memory runs out at every allocation in turn") {
  for (const size_t life : {0, 1, 3}) CHECK(live_with_faults(lives()[life], Fault::kHeap, true).failures > 100);
}

TEST_CASE("every allocation of cache memory fails in turn") {
  for (LifeChoice choice : lives()) {
    choice.faulty = true;
    CHECK(live_with_faults(choice, Fault::kArena, false).failures > 10);
  }
}

TEST_CASE("every operation of a backend fails in turn, before and after its work") {
  for (LifeChoice choice : lives()) {
    choice.faulty = true;
    CHECK(live_with_faults(choice, Fault::kBackendBefore, false).failures > 50);
    CHECK(live_with_faults(choice, Fault::kBackendAfter, false).failures > 50);
  }
}

TEST_CASE("the host cancels at every operation of a backend") {
  for (LifeChoice choice : lives()) {
    choice.faulty = true;
    CHECK(live_with_faults(choice, Fault::kCancel, false).failures > 10);
  }
}

}  // namespace
}  // namespace foldkv::test

// See above.
extern "C" const char* __lsan_default_suppressions() { return "leak:libdnnl"; }
