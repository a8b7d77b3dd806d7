#include <limits>

#include "tests/abi/api_fixture.h"

// Forks, and changes of what a sequence holds.
namespace foldkv::test {
namespace {

constexpr int64_t kRowNumbers = kKvHeads * kHeadSize;

// The fixture's world with an exact sequence of 100 tokens instead of a compressed one.
struct ExactApi : Api {
  ExactApi() {
    foldkv_sequence_release(sequence);
    sequence = nullptr;
    REQUIRE(foldkv_sequence_create(runtime, model, nullptr, nullptr, &sequence, nullptr) == FOLDKV_OK);
    feed(100, 1);
  }

  [[nodiscard]] std::vector<float> rows(const foldkv_sequence* of, int32_t layer, int32_t side) const {
    std::vector<float> numbers(static_cast<size_t>(100 * kRowNumbers));
    auto options = sized<foldkv_rebuild_options>();
    options.layer = layer;
    options.side = side;
    options.token_count = 100;
    const foldkv_tensor output = tensor_of(numbers, {100, kKvHeads, kHeadSize});
    REQUIRE(foldkv_sequence_rebuild(of, &options, &output, nullptr) == FOLDKV_OK);
    return numbers;
  }
};

TEST_CASE("a fork lives on without its original") {
  ExactApi api;
  foldkv_sequence* fork = nullptr;
  REQUIRE(foldkv_sequence_fork(api.sequence, &fork, nullptr) == FOLDKV_OK);
  const std::vector<float> keys = api.rows(api.sequence, 1, FOLDKV_KEYS);
  std::swap(fork, api.sequence);
  foldkv_sequence_release(fork);
  CHECK(api.rows(api.sequence, 1, FOLDKV_KEYS) == keys);
  api.feed(3, 8);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.tokens == 103);
}

TEST_CASE("fork checks its arguments and its time") {
  ExactApi api;
  foldkv_sequence* fork = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_fork(nullptr, &fork, error); });
  check_refused(FOLDKV_E_ARGUMENT, "fork",
                [&](foldkv_error* error) { return foldkv_sequence_fork(api.sequence, nullptr, error); });
  auto feed = sized<foldkv_feed>();
  feed.sequence = api.sequence;
  feed.token_count = 1;
  foldkv_step* step = nullptr;
  REQUIRE(foldkv_step_begin(api.runtime, &feed, 1, nullptr, &step, nullptr) == FOLDKV_OK);
  check_refused(FOLDKV_E_STATE, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_fork(api.sequence, &fork, error); });
  CHECK(fork == nullptr);
  foldkv_step_release(step);
}

TEST_CASE("replace writes rows, and checks its question and its tensor") {
  ExactApi api;
  std::vector<float> rows = some_numbers(40 * kRowNumbers, 5);
  const foldkv_tensor tensor = tensor_of(rows, {40, kKvHeads, kHeadSize});
  auto options = sized<foldkv_replace_options>();
  options.layer = 1;
  options.side = FOLDKV_VALUES;
  options.first_token = 60;
  const std::vector<float> before = api.rows(api.sequence, 1, FOLDKV_VALUES);
  const auto refused = [&](foldkv_status status, const std::string& argument, const auto& change) {
    foldkv_replace_options asked = options;
    foldkv_tensor given = tensor;
    change(asked, given);
    check_refused(status, argument,
                  [&](foldkv_error* error) { return foldkv_sequence_replace(api.sequence, &asked, &given, error); });
    CHECK(api.rows(api.sequence, 1, FOLDKV_VALUES) == before);
  };
  refused(FOLDKV_E_ARGUMENT, "options.layer", [](auto& asked, auto&) { asked.layer = 2; });
  refused(FOLDKV_E_ARGUMENT, "options.side", [](auto& asked, auto&) { asked.side = 2; });
  refused(FOLDKV_E_ARGUMENT, "options.reserved", [](auto& asked, auto&) { asked.reserved = 1; });
  refused(FOLDKV_E_ARGUMENT, "options.first_token", [](auto& asked, auto&) { asked.first_token = -1; });
  refused(FOLDKV_E_ARGUMENT, "options.first_token", [](auto& asked, auto&) { asked.first_token = 100; });
  refused(FOLDKV_E_ARGUMENT, "rows.shape", [](auto& asked, auto&) { asked.first_token = 61; });
  refused(FOLDKV_E_ARGUMENT, "rows.shape", [](auto&, auto& given) { given.shape[2] = 7; });
  refused(FOLDKV_E_ARGUMENT, "rows.data", [](auto&, auto& given) { given.data = nullptr; });
  rows.back() = std::numeric_limits<float>::infinity();
  refused(FOLDKV_E_NUMERIC, "rows", [](auto&, auto&) {});
  rows.back() = 0.0f;
  check_refused(FOLDKV_E_ARGUMENT, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_replace(nullptr, &options, &tensor, error); });
  check_refused(FOLDKV_E_ARGUMENT, "options",
                [&](foldkv_error* error) { return foldkv_sequence_replace(api.sequence, nullptr, &tensor, error); });
  check_refused(FOLDKV_E_ARGUMENT, "rows",
                [&](foldkv_error* error) { return foldkv_sequence_replace(api.sequence, &options, nullptr, error); });
  REQUIRE(foldkv_sequence_replace(api.sequence, &options, &tensor, nullptr) == FOLDKV_OK);
  const std::vector<float> after = api.rows(api.sequence, 1, FOLDKV_VALUES);
  for (size_t i = 0; i < after.size(); ++i) {
    const bool written = i >= 60 * kRowNumbers;
    CHECK(after[i] == doctest::Approx(written ? rows[i - 60 * kRowNumbers] : before[i]).epsilon(1e-3));
  }
}

TEST_CASE("latents are not replaced") {
  Api api;
  api.feed(100, 1);
  std::vector<float> rows(kRowNumbers);
  const foldkv_tensor tensor = tensor_of(rows, {1, kKvHeads, kHeadSize});
  auto options = sized<foldkv_replace_options>();
  options.first_token = 20;
  check_refused(FOLDKV_E_STATE, "options.first_token",
                [&](foldkv_error* error) { return foldkv_sequence_replace(api.sequence, &options, &tensor, error); });
}

TEST_CASE("perturb leaves sinks and recent tokens alone unless told otherwise, and checks its question") {
  ExactApi api;
  auto options = sized<foldkv_perturb_options>();
  options.scale = 0.1;
  const std::vector<float> before = api.rows(api.sequence, 0, FOLDKV_VALUES);
  const auto refused = [&](foldkv_status status, const std::string& argument, const auto& change) {
    foldkv_perturb_options asked = options;
    change(asked);
    check_refused(status, argument,
                  [&](foldkv_error* error) { return foldkv_sequence_perturb(api.sequence, &asked, error); });
    CHECK(api.rows(api.sequence, 0, FOLDKV_VALUES) == before);
  };
  refused(FOLDKV_E_ARGUMENT, "options.layer", [](auto& asked) { asked.layer = -1; });
  refused(FOLDKV_E_ARGUMENT, "options.keys", [](auto& asked) { asked.keys = 2; });
  refused(FOLDKV_E_ARGUMENT, "options.reserved", [](auto& asked) { asked.reserved = 1; });
  refused(FOLDKV_E_ARGUMENT, "options.scale", [](auto& asked) { asked.scale = 0.0; });
  refused(FOLDKV_E_ARGUMENT, "options.scale", [](auto& asked) { asked.scale = NAN; });
  refused(FOLDKV_E_ARGUMENT, "options.scale", [](auto& asked) { asked.scale = INFINITY; });
  refused(FOLDKV_E_ARGUMENT, "options.example", [](auto& asked) { asked.example = -1; });
  refused(FOLDKV_E_ARGUMENT, "options.example", [](auto& asked) { asked.example = int64_t{1} << 32; });
  refused(FOLDKV_E_ARGUMENT, "options.first_token", [](auto& asked) { asked.first_token = 100; });
  refused(FOLDKV_E_ARGUMENT, "options.token_count", [](auto& asked) { asked.token_count = 101; });
  refused(FOLDKV_E_ARGUMENT, "options.token_count", [](auto& asked) { asked.token_count = -1; });
  refused(FOLDKV_E_STATE, "options.token_count", [](auto& asked) { asked.first_token = 36; });
  refused(FOLDKV_E_NUMERIC, "options.scale", [](auto& asked) { asked.scale = 1e9; });
  check_refused(FOLDKV_E_ARGUMENT, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_perturb(nullptr, &options, error); });
  check_refused(FOLDKV_E_ARGUMENT, "options",
                [&](foldkv_error* error) { return foldkv_sequence_perturb(api.sequence, nullptr, error); });

  const std::vector<float> keys = api.rows(api.sequence, 0, FOLDKV_KEYS);
  REQUIRE(foldkv_sequence_perturb(api.sequence, &options, nullptr) == FOLDKV_OK);
  std::vector<float> after = api.rows(api.sequence, 0, FOLDKV_VALUES);
  for (size_t row = 0; row < 100; ++row) {
    const auto at = [&](const std::vector<float>& of) {
      return std::vector<float>(of.begin() + static_cast<std::ptrdiff_t>(row * kRowNumbers),
                                of.begin() + static_cast<std::ptrdiff_t>((row + 1) * kRowNumbers));
    };
    CHECK((at(after) == at(before)) == (row < 4 || row >= 36));
  }
  CHECK(api.rows(api.sequence, 0, FOLDKV_KEYS) == keys);
  options.keys = 1;
  options.first_token = 99;
  options.token_count = 1;
  REQUIRE(foldkv_sequence_perturb(api.sequence, &options, nullptr) == FOLDKV_OK);
  CHECK(api.rows(api.sequence, 0, FOLDKV_KEYS) != keys);
  CHECK(api.rows(api.sequence, 0, FOLDKV_VALUES) == after);
}

TEST_CASE("a sequence is cut at a position") {
  ExactApi api;
  REQUIRE(foldkv_sequence_truncate(api.sequence, 40, nullptr) == FOLDKV_OK);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.tokens == 40);
  CHECK(stats.next_position == 40);
  CHECK(stats.lowest_truncation == 0);
  check_refused(FOLDKV_E_ARGUMENT, "position",
                [&](foldkv_error* error) { return foldkv_sequence_truncate(api.sequence, 41, error); });
  check_refused(FOLDKV_E_ARGUMENT, "position",
                [&](foldkv_error* error) { return foldkv_sequence_truncate(api.sequence, -1, error); });
  check_refused(FOLDKV_E_ARGUMENT, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_truncate(nullptr, 0, error); });
}

TEST_CASE("plans, spilling and descriptions check what they are asked") {
  ExactApi exact;
  Api api;
  api.feed(120, 1);
  check_refused(FOLDKV_E_STATE, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_set_plan(exact.sequence, nullptr, error); });
  check_refused(FOLDKV_E_ARGUMENT, "plan",
                [&](foldkv_error* error) { return foldkv_sequence_set_plan(api.sequence, "none such", error); });
  CHECK(foldkv_sequence_set_plan(api.sequence, nullptr, nullptr) == FOLDKV_OK);
  CHECK(foldkv_sequence_spill(api.sequence, nullptr) == FOLDKV_E_STATE);
  auto reclaimable = sized<foldkv_reclaimable>();
  REQUIRE(foldkv_sequence_get_reclaimable(api.sequence, &reclaimable, nullptr) == FOLDKV_OK);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(reclaimable.release == stats.bytes);
  CHECK(reclaimable.spill > 0);
  size_t size = 0;
  REQUIRE(foldkv_sequence_describe(api.sequence, nullptr, 0, &size, nullptr) == FOLDKV_OK);
  std::string text(size, 'x');
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_sequence_describe(api.sequence, text.data(), size - 1, &size, error);
  });
  REQUIRE(foldkv_sequence_describe(api.sequence, text.data(), size, &size, nullptr) == FOLDKV_OK);
  CHECK(text.size() == std::string(text.c_str()).size() + 1);
  CHECK(text.find("tokens: 120 fed") != std::string::npos);
}

}  // namespace
}  // namespace foldkv::test
