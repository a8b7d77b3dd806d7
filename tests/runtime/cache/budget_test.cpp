#include "doctest/doctest.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

TEST_CASE("a budget too small for profile and model refuses the sequence and keeps nothing") {
  const ToyHost host{ToyShape{}};
  const auto profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 0});
  const auto runtime = open_runtime({"cpu", 1, false, 1024});
  const auto sequence = Sequence::create(runtime, host.model(), profile, {});
  REQUIRE_FALSE(sequence.ok());
  CHECK(sequence.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(runtime->arena().stats().ledger.total() == 0);
}

TEST_CASE("a step that does not fit changes nothing, and the sequence still decodes as if it had not been tried") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(5000, 6);
  for (const std::string& name : backend_names()) {
    const auto profile = calibrate(open_runtime({name}), host, {2, 4, 0, 16, 2});
    const auto tight = open_runtime({name, 1, false, 600000});
    const auto wide = open_runtime({name, 1});
    const auto sequence = make_sequence(tight, host, profile, {});
    const auto twin = make_sequence(wide, host, profile, {});
    (void)run_step(tight, host, {{sequence, &tokens, 0, 150, false, {}}});
    (void)run_step(wide, host, {{twin, &tokens, 0, 150, false, {}}});
    const Ledger before = tight->arena().stats().ledger;
    const auto step = Step::begin(tight, {{sequence, 4800, {}, false}}, {});
    REQUIRE_FALSE(step.ok());
    CHECK(step.status().code() == absl::StatusCode::kResourceExhausted);
    CHECK(argument_of(step.status()) == "feeds[0]");
    for (size_t role = 0; role < kRoleCount; ++role) {
      CHECK(tight->arena().stats().ledger.of(static_cast<Role>(role)) == before.of(static_cast<Role>(role)));
    }
    for (int64_t token = 150; token < 155; ++token) {
      CHECK(run_step(tight, host, {{sequence, &tokens, token, 1, false, {}}}) ==
            run_step(wide, host, {{twin, &tokens, token, 1, false, {}}}));
    }
  }
}

TEST_CASE("of several sequences in a refused step none has changed, whichever did not fit") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(100, 6);
  const auto runtime = open_runtime({"cpu", 1, false, 400000});
  const auto first = make_sequence(runtime, host, nullptr, {});
  const auto second = make_sequence(runtime, host, nullptr, {});
  (void)run_step(runtime, host, {{first, &tokens, 0, 20, false, {}}, {second, &tokens, 0, 40, false, {}}});
  const int64_t before = runtime->arena().stats().ledger.total();
  CHECK_FALSE(Step::begin(runtime, {{first, 1, {}, false}, {second, 100000, {}, false}}, {}).ok());
  CHECK_FALSE(Step::begin(runtime, {{first, 100000, {}, false}, {second, 1, {}, false}}, {}).ok());
  CHECK(runtime->arena().stats().ledger.total() == before);
  (void)run_step(runtime, host, {{first, &tokens, 20, 1, false, {}}, {second, &tokens, 40, 1, false, {}}});
}

}  // namespace
}  // namespace foldkv::test
