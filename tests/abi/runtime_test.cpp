#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

foldkv_runtime_options good_options() {
  auto options = sized<foldkv_runtime_options>();
  options.budget_bytes = 1u << 20;
  return options;
}

void check_options_refused(const foldkv_runtime_options& options, foldkv_status expected, const std::string& argument) {
  foldkv_runtime* runtime = nullptr;
  check_refused(expected, argument,
                [&](foldkv_error* error) { return foldkv_runtime_create(&options, &runtime, error); });
  CHECK(runtime == nullptr);
}

TEST_CASE("runtime options are checked field by field") {
  foldkv_runtime* runtime = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, "options",
                [&](foldkv_error* error) { return foldkv_runtime_create(nullptr, &runtime, error); });
  auto options = good_options();
  check_refused(FOLDKV_E_ARGUMENT, "runtime",
                [&](foldkv_error* error) { return foldkv_runtime_create(&options, nullptr, error); });
  options.struct_size = 0;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.struct_size");
  options = good_options();
  options.budget_bytes = 0;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.budget_bytes");
  options.budget_bytes = UINT64_MAX;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.budget_bytes");
  options = good_options();
  options.backend = "abacus";
  check_options_refused(options, FOLDKV_E_UNSUPPORTED, "options.backend");
  options = good_options();
  options.device = 1;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.device");
  options.device = -1;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.device");
  options = good_options();
  options.threads = -1;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.threads");
  options = good_options();
  options.deterministic = 2;
  check_options_refused(options, FOLDKV_E_ARGUMENT, "options.deterministic");
}

TEST_CASE("an unknown instruction set is refused, never replaced") {
  auto options = good_options();
  options.instruction_set = "mmx";
  foldkv_runtime* runtime = nullptr;
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_E_UNSUPPORTED);
  CHECK(std::string(error.message).find("mmx") != std::string::npos);
}

TEST_CASE("structs of newer callers: zero tails are fine, set fields are not") {
  struct {
    foldkv_runtime_options options;
    int64_t newer;
  } grown{good_options(), 0};
  grown.options.struct_size = sizeof(grown);
  foldkv_runtime* runtime = nullptr;
  REQUIRE(foldkv_runtime_create(&grown.options, &runtime, nullptr) == FOLDKV_OK);
  foldkv_runtime_release(runtime);
  grown.newer = 1;
  runtime = nullptr;
  check_refused(FOLDKV_E_VERSION, "options",
                [&](foldkv_error* error) { return foldkv_runtime_create(&grown.options, &runtime, error); });
}

TEST_CASE("structs of older callers: missing fields read as zero, results are cut to their size") {
  const Api api;
  auto stats = sized<foldkv_runtime_stats>();
  stats.struct_size = offsetof(foldkv_runtime_stats, peak_bytes);
  stats.peak_bytes = 12345;
  REQUIRE(foldkv_runtime_get_stats(api.runtime, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.budget_bytes == 64u << 20);
  CHECK(stats.peak_bytes == 12345);
}

TEST_CASE("stats name every byte") {
  const Api api;
  auto stats = sized<foldkv_runtime_stats>();
  REQUIRE(foldkv_runtime_get_stats(api.runtime, &stats, nullptr) == FOLDKV_OK);
  const foldkv_ledger& ledger = stats.ledger;
  CHECK(ledger.exact + ledger.latent + ledger.correction + ledger.mean + ledger.positions + ledger.profile +
            ledger.model + ledger.scratch ==
        stats.used_bytes);
  CHECK(stats.sequence_count == 1);
  CHECK(stats.threads == 2);
  CHECK(std::string(stats.backend) == "cpu");
  check_refused(FOLDKV_E_ARGUMENT, "runtime",
                [&](foldkv_error* error) { return foldkv_runtime_get_stats(nullptr, &stats, error); });
  check_refused(FOLDKV_E_ARGUMENT, "stats",
                [&](foldkv_error* error) { return foldkv_runtime_get_stats(api.runtime, nullptr, error); });
}

TEST_CASE("backends, versions and names") {
  CHECK(std::string(foldkv_version()) == "0.1.0");
  CHECK(foldkv_abi_version() == FOLDKV_ABI_VERSION);
  CHECK(std::string(foldkv_build_info()).find("foldkv 0.1.0") == 0);
  CHECK(std::string(foldkv_status_name(FOLDKV_E_BUDGET)) == "FOLDKV_E_BUDGET");
  CHECK(std::string(foldkv_status_name(12345)) == "FOLDKV_E_UNKNOWN");
  CHECK(foldkv_backend_count() == 2);
  for (int32_t index = 0; index < foldkv_backend_count(); ++index) {
    auto info = sized<foldkv_backend_info>();
    REQUIRE(foldkv_backend_get(index, &info, nullptr) == FOLDKV_OK);
    CHECK(std::strlen(info.name) > 0);
    CHECK(info.device_count == 1);
  }
  auto info = sized<foldkv_backend_info>();
  check_refused(FOLDKV_E_ARGUMENT, "index", [&](foldkv_error* error) { return foldkv_backend_get(2, &info, error); });
  check_refused(FOLDKV_E_ARGUMENT, "index", [&](foldkv_error* error) { return foldkv_backend_get(-1, &info, error); });
  check_refused(FOLDKV_E_ARGUMENT, "info", [&](foldkv_error* error) { return foldkv_backend_get(0, nullptr, error); });
}

TEST_CASE("release takes NULL") {
  foldkv_runtime_release(nullptr);
  foldkv_model_release(nullptr);
  foldkv_profile_release(nullptr);
  foldkv_calibrator_release(nullptr);
  foldkv_sequence_release(nullptr);
  foldkv_step_release(nullptr);
}

TEST_CASE("the host's threads may do the work") {
  struct Counter {
    int calls = 0;
  } counter;
  auto options = good_options();
  options.budget_bytes = 8u << 20;
  options.threads = 3;
  options.parallel_for_context = &counter;
  options.parallel_for = [](void* context, int32_t count, void (*task)(void*, int32_t), void* task_context) {
    ++static_cast<Counter*>(context)->calls;
    for (int32_t index = count - 1; index >= 0; --index) task(task_context, index);
  };
  Api api;
  foldkv_runtime* runtime = nullptr;
  REQUIRE(foldkv_runtime_create(&options, &runtime, nullptr) == FOLDKV_OK);
  foldkv_runtime_release(api.runtime);
  foldkv_sequence_release(api.sequence);
  api.runtime = runtime;
  REQUIRE(foldkv_sequence_create(runtime, api.model, api.profile, nullptr, &api.sequence, nullptr) == FOLDKV_OK);
  api.feed(300, 1);
  CHECK(counter.calls > 0);
}

TEST_CASE("times, trimming and hooks are there for who asks") {
  auto options = sized<foldkv_runtime_options>();
  options.budget_bytes = 1 << 20;
  options.measure_times = 2;
  foldkv_runtime* runtime = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, "options.measure_times",
                [&](foldkv_error* error) { return foldkv_runtime_create(&options, &runtime, error); });
  options.measure_times = 1;
  REQUIRE(foldkv_runtime_create(&options, &runtime, nullptr) == FOLDKV_OK);
  uint64_t freed = 1;
  CHECK(foldkv_runtime_trim(runtime, &freed, nullptr) == FOLDKV_OK);
  CHECK(freed == 0);
  CHECK(foldkv_runtime_trim(runtime, nullptr, nullptr) == FOLDKV_OK);
  auto times = sized<foldkv_times>();
  REQUIRE(foldkv_runtime_get_times(runtime, &times, nullptr) == FOLDKV_OK);
  CHECK(times.steps == 0);
  CHECK(times.attend == 0.0);
  check_refused(FOLDKV_E_ARGUMENT, "times",
                [&](foldkv_error* error) { return foldkv_runtime_get_times(runtime, nullptr, error); });
  foldkv_runtime_release(runtime);
}

}  // namespace
}  // namespace foldkv::test
