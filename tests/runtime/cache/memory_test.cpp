#include <unistd.h>

#include <cstdlib>
#include <fstream>

// Sanitizers keep memory of their own (shadows, freed blocks in quarantine), so that the resident memory of a sanitized
// process says nothing about the library's. All else is tested there too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOLDKV_TESTS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOLDKV_TESTS_SANITIZED 1
#endif
#endif

#include "doctest/doctest.h"
#include "runtime/cache/estimate.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

#ifndef FOLDKV_TESTS_SANITIZED
int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

ToyShape wide_shape() {
  ToyShape shape;
  shape.layers = 2;
  shape.query_heads = 12;
  shape.kv_heads = 12;
  shape.head_size = 16;
  return shape;
}

void check_resident(int64_t before_resident, int64_t before_used, const Runtime& runtime) {
  const int64_t grown = resident_bytes() - before_resident;
  const int64_t used = runtime.arena().stats().ledger.total() - before_used;
  CHECK(std::abs(grown - used) <= used / 50 + (int64_t{1} << 20));
}

TEST_CASE("resident memory grows by what the stats say, within 2% and 1 MiB, at 8,192 tokens") {
  const ToyHost host(wide_shape());
  const ToyTokens tokens = host.tokens(8192, 3);
  const auto runtime = open_runtime({"cpu", 2});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 128, 0}, 1000);
  // One life beforehand, so that libraries and heap have taken what they take once.
  const auto live = [&](const std::shared_ptr<const Profile>& chosen) {
    const auto sequence = make_sequence(runtime, host, chosen, {});
    for (int64_t token = 0; token < 8192; token += 512) {
      (void)run_step(runtime, host, {{sequence, &tokens, token, 512, token + 512 < 8192, {}}});
    }
    return sequence;
  };
  (void)live(profile);
  const int64_t resident = resident_bytes();
  const int64_t used = runtime->arena().stats().ledger.total();
  const auto compressed = live(profile);
  const int64_t compressed_bytes = compressed->storage().ledger().total();
  check_resident(resident, used, *runtime);
  const auto exact = live(nullptr);
  check_resident(resident, used, *runtime);
  CHECK(exact->storage().ledger().total() > 6 * compressed_bytes);
}
#endif

TEST_CASE("an estimate is what is then used, to the byte") {
  ToyShape shape;
  shape.hidden = 24;
  const ToyHost host(shape);
  for (const std::string& name : backend_names()) {
    for (int32_t rank : {0, 3}) {
      for (const auto& [prompt, generated] : {std::pair{0, 3}, {1, 1}, {67, 40}, {600, 130}, {97, 0}}) {
        for (bool hidden : {false, true}) {
          const auto runtime = open_runtime({name, 2});
          const auto profile = calibrate(runtime, host, {3, 4, 0, 16, rank});
          SequencePolicy policy;
          policy.fold_tokens = 16;
          const StepRules rules{hidden, hidden};
          const auto estimate = estimate_sequence(*runtime, host.model(), profile, {policy, rules, prompt, generated});
          REQUIRE(estimate.ok());
          const int64_t before = runtime->arena().stats().ledger.total();
          const auto sequence = make_sequence(runtime, host, profile, policy);
          const int64_t shared = runtime->arena().stats().ledger.total() - before;
          CHECK(shared == estimate->shared_bytes);
          const ToyTokens tokens = host.tokens(prompt + generated, 3);
          if (prompt > 0) (void)run_step(runtime, host, {{sequence, &tokens, 0, prompt, false, {}}}, rules);
          for (int64_t token = prompt; token < prompt + generated; ++token) {
            (void)run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}}, rules);
          }
          CHECK(sequence->storage().ledger().total() == estimate->sequence_bytes);
          CHECK(runtime->arena().stats().ledger.total() == shared + estimate->sequence_bytes);
        }
      }
    }
  }
}

TEST_CASE("a budget of exactly the estimated peak is enough, one block less is not") {
  const ToyHost host{ToyShape{}};
  const auto source = open_runtime({"cpu", 2});
  const auto profile = calibrate(source, host, {2, 4, 0, 16, 0});
  const auto estimate = estimate_sequence(*source, host.model(), profile, {{}, {}, 300, 0});
  REQUIRE(estimate.ok());
  const ToyTokens tokens = host.tokens(300, 3);
  for (int64_t missing : {0, 64}) {
    const auto runtime =
        open_runtime({"cpu", 2, false, estimate->shared_bytes + estimate->peak_bytes - missing});
    const auto sequence = make_sequence(runtime, host, profile, {});
    const auto step = Step::begin(runtime, {{sequence, 300, {}, false}}, {});
    CHECK(step.ok() == (missing == 0));
    if (!step.ok()) CHECK(step.status().code() == absl::StatusCode::kResourceExhausted);
  }
}

TEST_CASE("shared data is paid once and leaves with the last sequence") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 0});
  CHECK(runtime->arena().stats().ledger.total() == 0);
  auto first = make_sequence(runtime, host, profile, {});
  const int64_t once = runtime->arena().stats().ledger.total();
  auto second = make_sequence(runtime, host, profile, {});
  CHECK(runtime->arena().stats().ledger.total() == once);
  CHECK(runtime->sequence_count() == 2);
  first.reset();
  CHECK(runtime->arena().stats().ledger.total() == once);
  second.reset();
  CHECK(runtime->arena().stats().ledger.total() == 0);
}

}  // namespace
}  // namespace foldkv::test
