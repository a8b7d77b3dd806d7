#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

TEST_CASE("sequence options are checked") {
  const Api api;
  foldkv_sequence* sequence = nullptr;
  const auto refused = [&](const std::string& argument, const auto& change) {
    auto options = sized<foldkv_sequence_options>();
    change(options);
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_sequence_create(api.runtime, api.model, api.profile, &options, &sequence, error);
    });
    CHECK(sequence == nullptr);
  };
  refused("options.dtype", [](auto& options) { options.dtype = 4; });
  refused("options.sink_tokens", [](auto& options) { options.sink_tokens = -2; });
  refused("options.recent_tokens", [](auto& options) { options.recent_tokens = -2; });
  refused("options.fold_tokens", [](auto& options) { options.fold_tokens = -2; });
  refused("options.mean", [](auto& options) { options.mean = 3; });
  refused("options.arithmetic", [](auto& options) { options.arithmetic = 3; });
  refused("options.arithmetic", [](auto& options) { options.arithmetic = -1; });
  refused("options.reserved", [](auto& options) { options.reserved = 1; });
  refused("options.plan", [](auto& options) { options.plan = "huge"; });
  auto with_plan = sized<foldkv_sequence_options>();
  with_plan.plan = "default";
  check_refused(FOLDKV_E_ARGUMENT, "options.plan", [&](foldkv_error* error) {
    return foldkv_sequence_create(api.runtime, api.model, nullptr, &with_plan, &sequence, error);
  });
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, api.profile, &with_plan, &sequence, nullptr) == FOLDKV_OK);
  foldkv_sequence_release(sequence);
  sequence = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, "runtime", [&](foldkv_error* error) {
    return foldkv_sequence_create(nullptr, api.model, nullptr, nullptr, &sequence, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "model", [&](foldkv_error* error) {
    return foldkv_sequence_create(api.runtime, nullptr, nullptr, nullptr, &sequence, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "sequence", [&](foldkv_error* error) {
    return foldkv_sequence_create(api.runtime, api.model, nullptr, nullptr, nullptr, error);
  });
}

TEST_CASE("only sequences of fast arithmetic pay for its basis, and estimates know it") {
  Api api;
  const auto profile_bytes = [&] {
    auto stats = sized<foldkv_runtime_stats>();
    REQUIRE(foldkv_runtime_get_stats(api.runtime, &stats, nullptr) == FOLDKV_OK);
    return stats.ledger.profile;
  };
  const auto shared_estimate = [&](int32_t arithmetic) {
    auto options = sized<foldkv_sequence_options>();
    options.arithmetic = arithmetic;
    auto estimate = sized<foldkv_estimate>();
    REQUIRE(foldkv_sequence_estimate(api.runtime, api.model, api.profile, &options, nullptr, 10, 0, &estimate,
                                     nullptr) == FOLDKV_OK);
    return estimate.shared_bytes;
  };
  const uint64_t exact = profile_bytes();
  auto options = sized<foldkv_sequence_options>();
  options.arithmetic = FOLDKV_ARITHMETIC_EXACT;
  foldkv_sequence* another = nullptr;
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, api.profile, &options, &another, nullptr) == FOLDKV_OK);
  CHECK(profile_bytes() == exact);
  options.arithmetic = FOLDKV_ARITHMETIC_FAST;
  foldkv_sequence* fast = nullptr;
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, api.profile, &options, &fast, nullptr) == FOLDKV_OK);
  const uint64_t fast_bytes = profile_bytes() - exact;
  CHECK(shared_estimate(FOLDKV_ARITHMETIC_FAST) - shared_estimate(FOLDKV_ARITHMETIC_EXACT) == fast_bytes - exact);
  foldkv_sequence_release(another);
  foldkv_sequence_release(fast);
  CHECK(profile_bytes() == exact);
}

TEST_CASE("stats tell where the tokens are and what they cost") {
  Api api;
  api.feed(300, 1);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.tokens == 300);
  CHECK(stats.latent_tokens == 232);
  CHECK(stats.exact_tokens == 68);
  CHECK(stats.exact_layers == 0);
  CHECK(stats.next_position == 300);
  CHECK(stats.latent_token_bytes == 20);
  CHECK(stats.full_token_bytes == 2 * 2 * 16 * kLayers);
  CHECK(stats.grouped_token_bytes == stats.full_token_bytes);
  CHECK(stats.full_cache_bytes == 300 * stats.full_token_bytes);
  CHECK(stats.ledger.latent == 4 * 64 * 20);
  CHECK(stats.ledger.exact == 2 * 5 * 16 * 2 * 16 * 2);  // 5 pages of 16 tokens in 2 layers
  CHECK(stats.bytes == stats.ledger.exact + stats.ledger.latent + stats.ledger.mean + stats.ledger.positions +
                           stats.ledger.correction);
  for (int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
    CHECK(stats.energy_out_of_basis[side] > 0.0);
    CHECK(stats.energy_out_of_basis[side] < 1.0);
    CHECK(stats.expected_energy_out_of_basis[side] > 0.0);
    CHECK(stats.expected_energy_out_of_basis[side] < 1.0);
  }
  api.feed(1, 9);
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.tokens == 301);
}

TEST_CASE("positions come back in order and need room") {
  Api api;
  api.feed(100, 1);
  int64_t count = 0;
  REQUIRE(foldkv_sequence_get_positions(api.sequence, nullptr, 0, &count, nullptr) == FOLDKV_OK);
  CHECK(count == 100);
  std::vector<int64_t> positions(100);
  REQUIRE(foldkv_sequence_get_positions(api.sequence, positions.data(), 100, &count, nullptr) == FOLDKV_OK);
  for (int64_t i = 0; i < 100; ++i) CHECK(positions[static_cast<size_t>(i)] == i);
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_sequence_get_positions(api.sequence, positions.data(), 99, &count, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "count", [&](foldkv_error* error) {
    return foldkv_sequence_get_positions(api.sequence, positions.data(), 100, nullptr, error);
  });
}

TEST_CASE("rebuild checks its question and its tensor") {
  Api api;
  api.feed(100, 1);
  std::vector<float> rows(100 * kKvHeads * kHeadSize, NAN);
  foldkv_tensor output = tensor_of(rows, {100, kKvHeads, kHeadSize});
  const auto refused = [&](const std::string& argument, const auto& change) {
    auto options = sized<foldkv_rebuild_options>();
    foldkv_tensor tensor = output;
    change(options, tensor);
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_sequence_rebuild(api.sequence, &options, &tensor, error);
    });
  };
  refused("options.layer", [](auto& options, auto&) { options.layer = 2; });
  refused("options.side", [](auto& options, auto&) { options.side = -1; });
  refused("options.rotated", [](auto& options, auto&) { options.rotated = 5; });
  refused("options.first_token", [](auto& options, auto&) { options.first_token = 100; });
  refused("options.token_count", [](auto& options, auto&) { options.token_count = 101; });
  refused("output.shape", [](auto& options, auto&) { options.token_count = 99; });
  refused("output.data", [](auto&, auto& tensor) { tensor.data = nullptr; });
  CHECK(std::isnan(rows[0]));
  auto options = sized<foldkv_rebuild_options>();
  options.rotated = 1;
  REQUIRE(foldkv_sequence_rebuild(api.sequence, &options, &output, nullptr) == FOLDKV_OK);
  for (float number : rows) CHECK(std::isfinite(number));
  // Rotation turns, it does not stretch: rotated and plain keys have the same length.
  std::vector<float> plain(rows.size());
  foldkv_tensor plain_output = tensor_of(plain, {100, kKvHeads, kHeadSize});
  options.rotated = 0;
  REQUIRE(foldkv_sequence_rebuild(api.sequence, &options, &plain_output, nullptr) == FOLDKV_OK);
  for (size_t head = 0; head < 200; ++head) {
    double length = 0.0;
    double turned = 0.0;
    for (size_t i = head * kHeadSize; i < (head + 1) * kHeadSize; ++i) {
      length += double{plain[i]} * plain[i];
      turned += double{rows[i]} * rows[i];
    }
    CHECK(turned == doctest::Approx(length).epsilon(1e-5));
  }
}

TEST_CASE("estimates check their question") {
  const Api api;
  auto estimate = sized<foldkv_estimate>();
  const auto ask = [&](int64_t prompt, int64_t generated, const foldkv_step_options* step, foldkv_error* error) {
    return foldkv_sequence_estimate(api.runtime, api.model, api.profile, nullptr, step, prompt, generated, &estimate,
                                    error);
  };
  check_refused(FOLDKV_E_ARGUMENT, "prompt_tokens", [&](foldkv_error* error) { return ask(-1, 0, nullptr, error); });
  check_refused(FOLDKV_E_ARGUMENT, "generated_tokens", [&](foldkv_error* error) { return ask(0, -1, nullptr, error); });
  auto step = sized<foldkv_step_options>();
  step.input = 9;
  check_refused(FOLDKV_E_ARGUMENT, "step_options.input", [&](foldkv_error* error) { return ask(1, 1, &step, error); });
  REQUIRE(ask(300, 0, nullptr, nullptr) == FOLDKV_OK);
  CHECK(estimate.sequence_bytes > 0);
  CHECK(estimate.peak_bytes > estimate.sequence_bytes);
}

TEST_CASE("handles may be released in any order, an open step included") {
  for (int order = 0; order < 3; ++order) {
    Api api;
    api.feed(100, 1);
    auto feed = sized<foldkv_feed>();
    feed.sequence = api.sequence;
    feed.token_count = 1;
    foldkv_step* step = nullptr;
    REQUIRE(foldkv_step_begin(api.runtime, &feed, 1, nullptr, &step, nullptr) == FOLDKV_OK);
    if (order == 0) {
      foldkv_sequence_release(api.sequence);
      api.sequence = nullptr;
    } else if (order == 1) {
      foldkv_runtime_release(api.runtime);
      api.runtime = nullptr;
    } else {
      foldkv_model_release(api.model);
      foldkv_profile_release(api.profile);
      api.model = nullptr;
      api.profile = nullptr;
    }
    std::vector<float> hidden = some_numbers(kHidden, 3);
    std::vector<float> output(kQueryHeads * kHeadSize, NAN);
    auto attend = sized<foldkv_attend>();
    attend.hidden = tensor_of(hidden, {1, kHidden});
    attend.output = tensor_of(output, {1, kQueryHeads, kHeadSize});
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      CHECK(foldkv_step_attend(step, layer, &attend, nullptr) == FOLDKV_OK);
    }
    CHECK(foldkv_step_commit(step, nullptr) == FOLDKV_OK);
    foldkv_step_release(step);
    CHECK(std::isfinite(output[0]));
  }
}

}  // namespace
}  // namespace foldkv::test
