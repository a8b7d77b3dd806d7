#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {
namespace {

using backend::Side;

constexpr int64_t kTokens = 300;  // more than are written at once

struct Scene {
  explicit Scene(const std::string& backend_name, NumberFormat format = NumberFormat::kF32)
      : runtime(open_runtime({backend_name})), tokens(host.tokens(kTokens + 1, 1)) {
    SequencePolicy policy;
    policy.format = format;
    exact = make_sequence(runtime, host, nullptr, policy);
    (void)run_step(runtime, host, {{exact, &tokens, 0, kTokens, false, {}}});
  }

  ToyHost host{ToyShape{}};
  std::shared_ptr<Runtime> runtime;
  ToyTokens tokens;
  std::shared_ptr<Sequence> exact;
};

TEST_CASE("what rebuild gives and replace takes back changes no bit") {
  for (const std::string& name : backend_names()) {
    for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
      const Scene scene(name, format);
      const auto fork = *scene.exact->fork();
      const std::vector<float> before = everything(*fork);
      for (const Side side : {Side::kKeys, Side::kValues}) {
        REQUIRE(replace_rows(*fork, {1, side, 0}, rebuilt(*fork, 1, side)).ok());
      }
      CHECK(everything(*fork) == before);
    }
  }
}

TEST_CASE("rows are written where they belong and nowhere else") {
  const Scene scene("cpu");
  const int64_t width = scene.host.shape().key_width();
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const std::vector<float> rows = scene.host.tokens(270, 9).value[0];
    std::vector<float> expected = rebuilt(*scene.exact, 2, side);
    std::copy(rows.begin(), rows.end(), expected.begin() + 21 * width);
    const std::vector<float> other = rebuilt(*scene.exact, 1, side);
    REQUIRE(replace_rows(*scene.exact, {2, side, 21}, rows).ok());
    CHECK(rebuilt(*scene.exact, 2, side) == expected);
    CHECK(rebuilt(*scene.exact, 1, side) == other);
  }
}

// The point of it: with all that a compressed sequence rebuilds, an exact one attends as that does.
TEST_CASE("an exact fork with the rows of a compressed sequence attends like it") {
  for (const std::string& name : backend_names()) {
    const Scene scene(name);
    const auto profile = calibrate(scene.runtime, scene.host, {2, 4, 0, 16, 2});
    const auto compressed = make_sequence(scene.runtime, scene.host, profile, {.format = NumberFormat::kF32});
    (void)run_step(scene.runtime, scene.host, {{compressed, &scene.tokens, 0, kTokens, false, {}}});
    REQUIRE(compressed->storage().latent_tokens() > 0);
    const auto fork = *scene.exact->fork();
    for (int64_t layer = 0; layer < scene.host.shape().layers; ++layer) {
      for (const Side side : {Side::kKeys, Side::kValues}) {
        REQUIRE(replace_rows(*fork, {layer, side, 0}, rebuilt(*compressed, layer, side)).ok());
      }
    }
    const auto next = [&](const std::shared_ptr<Sequence>& sequence) {
      return run_step(scene.runtime, scene.host, {{sequence, &scene.tokens, kTokens, 1, false, {}}});
    };
    const LayerOutputs expected = next(compressed);
    const LayerOutputs exact = next(scene.exact);
    const LayerOutputs replaced = next(fork);
    for (size_t layer = 0; layer < expected.size(); ++layer) {
      const std::vector<double> numbers(expected[layer].begin(), expected[layer].end());
      CHECK(relative_error(replaced[layer], numbers) < 1e-5);
      CHECK(relative_error(exact[layer], numbers) > 1e-3);
    }
  }
}

TEST_CASE("numbers that are not finite in the cache's format are refused before any is written") {
  for (const std::string& name : backend_names()) {
    const Scene scene(name, NumberFormat::kF16);
    const std::vector<float> before = everything(*scene.exact);
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 70000.0f}) {
      std::vector<float> rows = scene.host.tokens(kTokens, 9).value[0];
      rows.back() = bad;
      const Status status = replace_rows(*scene.exact, {0, Side::kValues, 0}, rows);
      CHECK(status.code() == absl::StatusCode::kUnknown);
      CHECK(argument_of(status) == "rows");
      CHECK(everything(*scene.exact) == before);
    }
  }
}

TEST_CASE("latents are not replaced, exact tokens on both sides of them are") {
  const Scene scene("cpu");
  const auto profile = calibrate(scene.runtime, scene.host, {2, 4, 0, 16, 0});
  const auto sequence = make_sequence(scene.runtime, scene.host, profile);
  (void)run_step(scene.runtime, scene.host, {{sequence, &scene.tokens, 0, kTokens, false, {}}});
  const auto width = static_cast<size_t>(scene.host.shape().key_width());
  const std::vector<float> before = everything(*sequence);
  const auto refused = [&](int64_t first, size_t count) {
    const Status status = replace_rows(*sequence, {0, Side::kKeys, first}, std::vector<float>(count * width));
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(argument_of(status) == "options.first_token");
    CHECK(everything(*sequence) == before);
  };
  refused(4, 1);
  refused(0, 5);
  refused(235, 65);
  refused(0, 300);
  CHECK(replace_rows(*sequence, {0, Side::kKeys, 0}, std::vector<float>(4 * width, 1.0f)).ok());
  CHECK(replace_rows(*sequence, {0, Side::kKeys, 236}, std::vector<float>(64 * width, 1.0f)).ok());
  const std::vector<float> keys = rebuilt(*sequence, 0, Side::kKeys);
  for (size_t i = 0; i < keys.size(); ++i) CHECK((keys[i] == 1.0f) == (i < 4 * width || i >= 236 * width));
}

TEST_CASE("a sequence in an open step is not written to") {
  const Scene scene("cpu");
  const auto step = Step::begin(scene.runtime, {{scene.exact, 1, {}, false}}, {});
  REQUIRE(step.ok());
  const Status status = replace_rows(*scene.exact, {0, Side::kKeys, 0}, rebuilt(*scene.exact, 0, Side::kKeys));
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(argument_of(status) == "sequence");
}

}  // namespace
}  // namespace foldkv::test
