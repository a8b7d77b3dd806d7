#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

TEST_CASE("a host that frees memory when asked lets the step go on") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(200, 1);
  std::vector<std::shared_ptr<Sequence>> old;
  std::vector<int64_t> asked;
  std::vector<std::string> said;
  RuntimeChoice choice{"cpu", 1, false, 700'000};
  choice.hooks.pressure = [&](int64_t needed) {
    asked.push_back(needed);
    if (old.empty()) return false;
    old.erase(old.begin());
    return true;
  };
  choice.hooks.log = [&](LogLevel level, const std::string& message) {
    if (level == LogLevel::kWarning) said.push_back(message);
  };
  const auto runtime = open_runtime(choice);
  while (asked.empty()) {
    old.push_back(make_sequence(runtime, host, nullptr));
    (void)run_step(runtime, host, {{old.back(), &tokens, 0, 200, false, {}}});
    REQUIRE(old.size() < 50);
  }
  CHECK(asked.front() > 0);
  CHECK(said.empty());
  old.clear();
  // Nothing to free: the call fails, and says so.
  const auto big = make_sequence(runtime, host, nullptr);
  asked.clear();
  const auto refused = Step::begin(runtime, {{big, 100'000, {}, false}}, {});
  CHECK(refused.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(asked.size() == 1);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("budget") != std::string::npos);
}

TEST_CASE("a host that says it has freed memory, but has not, is asked once") {
  const ToyHost host{ToyShape{}};
  int asked = 0;
  RuntimeChoice choice{"cpu", 1, false, 200'000};
  choice.hooks.pressure = [&](int64_t) {
    ++asked;
    return true;
  };
  const auto runtime = open_runtime(choice);
  const auto sequence = make_sequence(runtime, host, nullptr);
  CHECK(Step::begin(runtime, {{sequence, 50'000, {}, false}}, {}).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(asked == 1);
}

TEST_CASE("four threads feed 64 sequences under a budget that does not hold them all") {
  const ToyHost host{ToyShape{}};
  const auto profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 2});
  constexpr int64_t kSequences = 64;
  constexpr int64_t kSteps = 6;
  const ToyTokens tokens = host.tokens(100, 1);
  // What each sequence answers when it is alone.
  std::vector<LayerOutputs> expected;
  {
    const auto runtime = open_runtime({});
    const auto alone = make_sequence(runtime, host, profile);
    for (int64_t step = 0; step < kSteps; ++step) {
      expected.push_back(run_step(runtime, host, {{alone, &tokens, step * 15, 15, false, {}}}));
    }
  }
  const auto runtime = open_runtime({"cpu", 2, false, 1'500'000});
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (int64_t index = 0; index < kSequences; ++index) sequences.push_back(make_sequence(runtime, host, profile));
  std::atomic<int64_t> fed{0};
  std::atomic<int64_t> refused{0};
  std::atomic<int64_t> wrong{0};
  const auto work = [&](int64_t thread) {
    for (int64_t step = 0; step < kSteps; ++step) {
      for (int64_t index = thread; index < kSequences; index += 4) {
        const auto& sequence = sequences[static_cast<size_t>(index)];
        if (sequence->storage().token_count() != step * 15) continue;
        const auto outputs = try_step(runtime, host, {{sequence, &tokens, step * 15, 15, false, {}}});
        if (outputs.ok()) {
          ++fed;
          if (*outputs != expected[static_cast<size_t>(step)]) ++wrong;
        } else if (outputs.status().code() == absl::StatusCode::kResourceExhausted) {
          ++refused;
        } else {
          ++wrong;
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(refused > 0);
  CHECK(fed > kSequences);
  // In any order, from any thread.
  std::thread([&] { sequences.erase(sequences.begin(), sequences.begin() + 40); }).join();
  sequences.clear();
  CHECK(runtime->arena().stats().ledger.total() == 0);
}

TEST_CASE("forks of one prompt are fed by several threads at once, and answer alike") {
  const ToyHost host{ToyShape{}};
  const auto profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(300, 1);
  const auto runtime = open_runtime({"cpu", 2});
  const auto prompt = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{prompt, &tokens, 0, 200, false, {}}});
  std::vector<LayerOutputs> expected;
  const auto alone = prompt->fork().value();
  for (int64_t token = 200; token < 280; ++token) {
    expected.push_back(run_step(runtime, host, {{alone, &tokens, token, 1, false, {}}}));
  }
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      const auto fork = prompt->fork();
      if (!fork.ok()) {
        ++wrong;
        return;
      }
      for (int64_t token = 200; token < 280; ++token) {
        const auto outputs = try_step(runtime, host, {{*fork, &tokens, token, 1, false, {}}});
        if (!outputs.ok() || *outputs != expected[static_cast<size_t>(token - 200)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(everything(*prompt->fork().value()) == everything(*prompt));
}

TEST_CASE("a flag of the host ends a step, which may go on or be dropped") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  const ToyTokens tokens = host.tokens(200, 1);
  const auto sequence = make_sequence(runtime, host, profile);
  int32_t flag = 0;
  StepRules rules;
  rules.cancellation = Cancellation(&flag);
  const auto step = Step::begin(runtime, {{sequence, 200, {}, false}}, rules);
  REQUIRE(step.ok());
  for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
    GatheredInput input;
    gather_input(host, {{sequence, &tokens, 0, 200, false, {}}}, layer, {}, input);
    flag = 1;
    CHECK((*step)->attend(layer, input.views).code() == absl::StatusCode::kDeadlineExceeded);
    flag = 0;
    CHECK((*step)->attend(layer, input.views).ok());
  }
  flag = 1;
  CHECK((*step)->commit().code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(sequence->storage().token_count() == 0);
  flag = 0;
  REQUIRE((*step)->commit().ok());
  const auto straight = make_sequence(runtime, host, profile);
  (void)run_step(runtime, host, {{straight, &tokens, 0, 200, false, {}}});
  CHECK(everything(*sequence) == everything(*straight));
}

TEST_CASE("times are counted when asked for, and memory is given back when asked for") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(200, 1);
  for (const bool measured : {false, true}) {
    RuntimeChoice choice;
    choice.hooks.measure_times = measured;
    const auto runtime = open_runtime(choice);
    auto sequence = make_sequence(runtime, host, calibrate(open_runtime({}), host, {2, 4, 0, 16, 2}));
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 200, false, {}}});
    for (const Phase phase : {Phase::kAppend, Phase::kAttend, Phase::kEncode, Phase::kDecide}) {
      CHECK((runtime->times().seconds(phase) > 0.0) == measured);
    }
    CHECK(runtime->times().seconds(Phase::kSave) == 0.0);
    sequence.reset();
    CHECK(runtime->arena().stats().ledger.total() == 0);
    CHECK(runtime->arena().trim() >= 0);
    CHECK(runtime->arena().stats().resident == 0);
  }
}

TEST_CASE("a description names what is held where, and no number of any key") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, calibrate(runtime, host, {2, 4, 0, 16, 2}));
  const ToyTokens tokens = host.tokens(200, 1);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 200, false, {}}});
  const auto text = sequence->describe();
  REQUIRE(text.ok());
  for (const char* part : {"tokens: 200 fed", "next position 200", "latents 132", "exact 68", "positions 0-199",
                           "plan default", "sinks 4", "spilled no"}) {
    CHECK_MESSAGE(text->find(part) != std::string::npos, part);
  }
}

}  // namespace
}  // namespace foldkv::test
