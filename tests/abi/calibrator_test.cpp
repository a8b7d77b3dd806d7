#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

// Keys and values of that many tokens for every layer.
struct Sample {
  explicit Sample(int64_t tokens, uint32_t seed = 5) {
    rows.reserve(2 * kLayers);
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (auto* list : {&keys, &values}) {
        rows.push_back(some_numbers(tokens * kKvHeads * kHeadSize, seed + static_cast<uint32_t>(rows.size())));
        list->push_back(tensor_of(rows.back(), {tokens, kKvHeads, kHeadSize}));
      }
    }
  }
  std::vector<std::vector<float>> rows;
  std::vector<foldkv_tensor> keys, values;
};

class Calibration {
 public:
  explicit Calibration(const Api& api) {
    auto options = sized<foldkv_calibrator_options>();
    options.layers_per_group = 2;
    REQUIRE(foldkv_calibrator_create(api.runtime, api.model, &options, &calibrator, nullptr) == FOLDKV_OK);
  }
  ~Calibration() { foldkv_calibrator_release(calibrator); }
  Calibration(const Calibration&) = delete;
  Calibration& operator=(const Calibration&) = delete;

  foldkv_status observe(const Sample& sample, foldkv_error* error = nullptr) const {
    return foldkv_calibrator_observe(calibrator, sample.keys.data(), sample.values.data(), kLayers, 0, error);
  }

  foldkv_calibrator* calibrator = nullptr;
};

TEST_CASE("calibrator options are checked") {
  const Api api;
  foldkv_calibrator* calibrator = nullptr;
  const auto refused = [&](const std::string& argument, const auto& change) {
    auto options = sized<foldkv_calibrator_options>();
    change(options);
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_calibrator_create(api.runtime, api.model, &options, &calibrator, error);
    });
    CHECK(calibrator == nullptr);
  };
  refused("options.layers_per_group", [](auto& options) { options.layers_per_group = -1; });
  refused("options.skip_tokens", [](auto& options) { options.skip_tokens = -2; });
  refused("options.groups", [](auto& options) { options.group_count = 1; });
  const int32_t falling[2] = {1, 0};
  const int32_t far[1] = {2};
  auto group = sized<foldkv_layer_group>();
  group.layer_count = 2;
  group.layers = falling;
  refused("options.groups[0].layers[1]", [&](auto& options) {
    options.groups = &group;
    options.group_count = 1;
  });
  group.layer_count = 1;
  group.layers = far;
  refused("options.groups[0].layers[0]", [&](auto& options) {
    options.groups = &group;
    options.group_count = 1;
  });
  group.layers = nullptr;
  refused("options.groups[0].layers", [&](auto& options) {
    options.groups = &group;
    options.group_count = 1;
  });
}

TEST_CASE("observed tensors are checked and a refused one counts for nothing") {
  const Api api;
  const Calibration calibration(api);
  Sample sample(50);
  REQUIRE(calibration.observe(sample) == FOLDKV_OK);
  const auto refused = [&](foldkv_status status, const std::string& argument, const auto& change) {
    Sample changed(50, 77);
    change(changed);
    check_refused(status, argument, [&](foldkv_error* error) { return calibration.observe(changed, error); });
  };
  refused(FOLDKV_E_ARGUMENT, "keys[1].shape", [](Sample& changed) { changed.keys[1].shape[2] = 7; });
  refused(FOLDKV_E_ARGUMENT, "values[0].shape", [](Sample& changed) { changed.values[0].shape[1] = 3; });
  refused(FOLDKV_E_ARGUMENT, "keys[1].shape", [](Sample& changed) { changed.keys[1].shape[0] = 49; });
  refused(FOLDKV_E_ARGUMENT, "values[1].data", [](Sample& changed) { changed.values[1].data = nullptr; });
  refused(FOLDKV_E_NUMERIC, "values[1]", [](Sample& changed) { changed.rows[3][700] = NAN; });
  refused(FOLDKV_E_NUMERIC, "keys[0]", [](Sample& changed) { changed.rows[0][799] = INFINITY; });
  check_refused(FOLDKV_E_ARGUMENT, "layer_count", [&](foldkv_error* error) {
    return foldkv_calibrator_observe(calibration.calibrator, sample.keys.data(), sample.values.data(), 3, 0, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "first_token", [&](foldkv_error* error) {
    return foldkv_calibrator_observe(calibration.calibrator, sample.keys.data(), sample.values.data(), kLayers, -1,
                                     error);
  });
  foldkv_profile* profile = nullptr;
  REQUIRE(foldkv_calibrator_solve(calibration.calibrator, nullptr, &profile, nullptr) == FOLDKV_OK);
  auto info = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(profile, &info, nullptr) == FOLDKV_OK);
  CHECK(info.calibration_tokens == 46);
  foldkv_profile_release(profile);
}

TEST_CASE("one row cannot be solved") {
  const Api api;
  const Calibration calibration(api);
  REQUIRE(calibration.observe(Sample(5)) == FOLDKV_OK);
  foldkv_profile* profile = nullptr;
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_calibrator_solve(calibration.calibrator, nullptr, &profile, &error) == FOLDKV_E_STATE);
  CHECK(std::string(error.message).find("got 1 ") != std::string::npos);
  CHECK(profile == nullptr);
}

TEST_CASE("fewer rows than coordinates give a profile that says so and serves a sequence") {
  Api api;
  const Calibration calibration(api);
  REQUIRE(calibration.observe(Sample(20)) == FOLDKV_OK);  // 16 rows of 32 coordinates
  foldkv_profile* profile = nullptr;
  REQUIRE(foldkv_calibrator_solve(calibration.calibrator, nullptr, &profile, nullptr) == FOLDKV_OK);
  auto info = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(profile, &info, nullptr) == FOLDKV_OK);
  CHECK(info.shrinkage > 0.0);
  CHECK(info.shrinkage <= 1.0);
  REQUIRE(foldkv_profile_get_info(api.profile, &info, nullptr) == FOLDKV_OK);
  CHECK(info.shrinkage == 0.0);
  foldkv_sequence_release(api.sequence);
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, profile, nullptr, &api.sequence, nullptr) == FOLDKV_OK);
  api.feed(200, 3);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.latent_tokens == 132);
  foldkv_profile_release(profile);
}

TEST_CASE("solve options are checked and named") {
  const Api api;
  const Calibration calibration(api);
  REQUIRE(calibration.observe(Sample(100)) == FOLDKV_OK);
  const auto refused = [&](const std::string& argument, const auto& change) {
    auto options = sized<foldkv_solve_options>();
    change(options);
    foldkv_profile* profile = nullptr;
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_calibrator_solve(calibration.calibrator, &options, &profile, error);
    });
    CHECK(profile == nullptr);
  };
  refused("options.bits", [](auto& options) { options.bits = 1; });
  refused("options.bits", [](auto& options) { options.bits = 9; });
  refused("options.latent_width", [](auto& options) { options.latent_width = -1; });
  refused("options.scale_group", [](auto& options) { options.scale_group = -4; });
  refused("options.rotate", [](auto& options) { options.rotate = 2; });
  refused("options.uncentred", [](auto& options) { options.uncentred = -1; });
  refused("options.correction_rank", [](auto& options) { options.correction_rank = -1; });
  refused("options.key_bands", [](auto& options) { options.key_band_count = 1; });
  const foldkv_band bands[2] = {{8, 4}, {8, 11}};
  refused("options.value_bands[1].bits", [&](auto& options) {
    options.value_bands = bands;
    options.value_band_count = 2;
  });
}

TEST_CASE("a message names its field once") {
  const Api api;
  const Calibration calibration(api);
  auto options = sized<foldkv_solve_options>();
  foldkv_profile* profile = nullptr;
  foldkv_error error = sized<foldkv_error>();
  options.bits = 9;
  CHECK(foldkv_calibrator_solve(calibration.calibrator, &options, &profile, &error) == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.message) == "options.bits: got 9, expected 2 to 8");
  options.bits = 0;
  const foldkv_band band = {8, 11, 0, 0};
  options.key_bands = &band;
  options.key_band_count = 1;
  CHECK(foldkv_calibrator_solve(calibration.calibrator, &options, &profile, &error) == FOLDKV_E_ARGUMENT);
  CHECK(std::string(error.message).find("options.key_bands[0].bits: got 11") == 0);
}

TEST_CASE("gradients make a metric, in which a profile is solved and planned") {
  const Api api;
  const Calibration calibration(api);
  REQUIRE(calibration.observe(Sample(100)) == FOLDKV_OK);
  auto options = sized<foldkv_solve_options>();
  options.use_metric = 1;
  options.latent_width = 1000;
  options.scale_group = 8;
  foldkv_profile* profile = nullptr;
  CHECK(foldkv_calibrator_solve(calibration.calibrator, &options, &profile, nullptr) == FOLDKV_E_STATE);
  const Sample gradients(50, 3);
  const auto observe = [&](int32_t layers, int64_t first, foldkv_error* error) {
    return foldkv_calibrator_observe_gradients(calibration.calibrator, gradients.keys.data(), gradients.values.data(),
                                               layers, first, error);
  };
  check_refused(FOLDKV_E_ARGUMENT, "layer_count", [&](foldkv_error* error) { return observe(3, 0, error); });
  check_refused(FOLDKV_E_ARGUMENT, "first_token", [&](foldkv_error* error) { return observe(kLayers, -1, error); });
  check_refused(FOLDKV_E_ARGUMENT, "keys", [&](foldkv_error* error) {
    return foldkv_calibrator_observe_gradients(calibration.calibrator, nullptr, gradients.values.data(), kLayers, 0,
                                               error);
  });
  REQUIRE(observe(kLayers, 0, nullptr) == FOLDKV_OK);
  options.metric_floor = 2.0;
  check_refused(FOLDKV_E_ARGUMENT, "options.metric_floor", [&](foldkv_error* error) {
    return foldkv_calibrator_solve(calibration.calibrator, &options, &profile, error);
  });
  options.metric_floor = 0.0;
  REQUIRE(foldkv_calibrator_solve(calibration.calibrator, &options, &profile, nullptr) == FOLDKV_OK);

  foldkv_plan_options plans[2] = {sized<foldkv_plan_options>(), sized<foldkv_plan_options>()};
  plans[0].name = "4x";
  plans[0].ratio = 4.0;
  plans[1].name = "12 bytes";
  plans[1].bytes_per_token = 12.0;
  foldkv_profile* planned = nullptr;
  const auto refused = [&](const std::string& argument, int32_t count, const auto& change) {
    foldkv_plan_options changed[2] = {plans[0], plans[1]};
    change(changed);
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_plan(profile, changed, count, &planned, error);
    });
    CHECK(planned == nullptr);
  };
  refused("plan_count", 0, [](foldkv_plan_options*) {});
  refused("plans[1].name", 2, [](foldkv_plan_options* changed) { changed[1].name = nullptr; });
  refused("plans[1].name", 2, [](foldkv_plan_options* changed) { changed[1].name = "4x"; });
  refused("plans[0]", 2, [](foldkv_plan_options* changed) { changed[0].ratio = 0.0; });
  refused("plans[0].ratio", 2, [](foldkv_plan_options* changed) { changed[0].ratio = -4.0; });
  refused("plans[0].value_weight", 2, [](foldkv_plan_options* changed) { changed[0].value_weight = -1.0; });
  REQUIRE(foldkv_profile_plan(profile, plans, 2, &planned, nullptr) == FOLDKV_OK);
  auto info = sized<foldkv_plan_info>();
  REQUIRE(foldkv_profile_get_plan(planned, 1, &info, nullptr) == FOLDKV_OK);
  CHECK(std::string(info.name) == "12 bytes");
  CHECK(info.bytes_per_token <= 12);
  const double cost = info.expected_cost;
  REQUIRE(foldkv_profile_get_plan(planned, 0, &info, nullptr) == FOLDKV_OK);
  CHECK(info.bytes_per_token <= info.full_bytes_per_token / 4);
  CHECK(info.expected_cost < cost);
  foldkv_profile_release(planned);
  foldkv_profile_release(profile);
}

TEST_CASE("two halves merged are the whole") {
  const Api api;
  const Calibration left(api);
  const Calibration right(api);
  const Calibration whole(api);
  const Sample first(60, 1);
  const Sample second(70, 2);
  REQUIRE(left.observe(first) == FOLDKV_OK);
  REQUIRE(right.observe(second) == FOLDKV_OK);
  REQUIRE(whole.observe(first) == FOLDKV_OK);
  REQUIRE(whole.observe(second) == FOLDKV_OK);
  REQUIRE(foldkv_calibrator_merge(left.calibrator, right.calibrator, nullptr) == FOLDKV_OK);
  std::vector<double> variances[2];
  for (int index = 0; index < 2; ++index) {
    foldkv_profile* profile = nullptr;
    REQUIRE(foldkv_calibrator_solve(index == 0 ? left.calibrator : whole.calibrator, nullptr, &profile, nullptr) ==
            FOLDKV_OK);
    variances[index].resize(32);
    REQUIRE(foldkv_profile_get_variances(profile, 0, FOLDKV_KEYS, variances[index].data(), 32, nullptr) == FOLDKV_OK);
    foldkv_profile_release(profile);
  }
  for (size_t i = 0; i < 32; ++i) CHECK(variances[0][i] == doctest::Approx(variances[1][i]).epsilon(1e-9));
  check_refused(FOLDKV_E_ARGUMENT, "other",
                [&](foldkv_error* error) { return foldkv_calibrator_merge(left.calibrator, nullptr, error); });
}

std::vector<unsigned char> saved(const foldkv_calibrator* calibrator) {
  size_t size = 0;
  REQUIRE(foldkv_calibrator_save(calibrator, nullptr, 0, &size, nullptr) == FOLDKV_OK);
  std::vector<unsigned char> bytes(size);
  REQUIRE(foldkv_calibrator_save(calibrator, bytes.data(), bytes.size(), &size, nullptr) == FOLDKV_OK);
  CHECK(size == bytes.size());
  return bytes;
}

TEST_CASE("a calibrator is saved, loaded and goes on") {
  const Api api;
  const Calibration whole(api);
  Calibration begun(api);
  const Sample first(60, 1);
  const Sample second(300, 2);
  REQUIRE(whole.observe(first) == FOLDKV_OK);
  REQUIRE(begun.observe(first) == FOLDKV_OK);
  const std::vector<unsigned char> bytes = saved(begun.calibrator);
  foldkv_calibrator* loaded = nullptr;
  REQUIRE(foldkv_calibrator_load(api.runtime, api.model, bytes.data(), bytes.size(), &loaded, nullptr) == FOLDKV_OK);
  foldkv_calibrator_release(begun.calibrator);
  begun.calibrator = loaded;
  auto info = sized<foldkv_calibrator_info>();
  REQUIRE(foldkv_calibrator_get_info(loaded, &info, nullptr) == FOLDKV_OK);
  CHECK(info.group_count == 1);
  CHECK(info.samples == 1);
  CHECK(info.rows == 56);
  CHECK(info.gradient_rows == 0);
  REQUIRE(foldkv_calibrator_observe_gradients(loaded, first.keys.data(), first.values.data(), kLayers, 0, nullptr) ==
          FOLDKV_OK);
  REQUIRE(foldkv_calibrator_get_info(loaded, &info, nullptr) == FOLDKV_OK);
  CHECK(info.gradient_rows == 56);
  REQUIRE(foldkv_calibrator_observe_gradients(whole.calibrator, first.keys.data(), first.values.data(), kLayers, 0,
                                              nullptr) == FOLDKV_OK);
  REQUIRE(whole.observe(second) == FOLDKV_OK);
  REQUIRE(begun.observe(second) == FOLDKV_OK);
  CHECK(saved(begun.calibrator) == saved(whole.calibrator));
}

TEST_CASE("saving, loading and asking refuse what is wrong") {
  const Api api;
  const Calibration calibration(api);
  REQUIRE(calibration.observe(Sample(60, 1)) == FOLDKV_OK);
  std::vector<unsigned char> bytes = saved(calibration.calibrator);
  size_t size = 7;
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_calibrator_save(calibration.calibrator, bytes.data(), bytes.size() - 1, &size, error);
  });
  CHECK(size == 7);
  check_refused(FOLDKV_E_ARGUMENT, "calibrator",
                [&](foldkv_error* error) { return foldkv_calibrator_save(nullptr, nullptr, 0, &size, error); });
  check_refused(FOLDKV_E_ARGUMENT, "size", [&](foldkv_error* error) {
    return foldkv_calibrator_save(calibration.calibrator, nullptr, 0, nullptr, error);
  });
  auto info = sized<foldkv_calibrator_info>();
  check_refused(FOLDKV_E_ARGUMENT, "calibrator",
                [&](foldkv_error* error) { return foldkv_calibrator_get_info(nullptr, &info, error); });
  check_refused(FOLDKV_E_ARGUMENT, "info", [&](foldkv_error* error) {
    return foldkv_calibrator_get_info(calibration.calibrator, nullptr, error);
  });

  foldkv_calibrator* loaded = nullptr;
  const auto refused = [&](foldkv_status status, const std::string& argument, foldkv_runtime* runtime,
                           const foldkv_model* model, const void* source) {
    check_refused(status, argument, [&](foldkv_error* error) {
      return foldkv_calibrator_load(runtime, model, source, bytes.size(), &loaded, error);
    });
    CHECK(loaded == nullptr);
  };
  refused(FOLDKV_E_ARGUMENT, "runtime", nullptr, api.model, bytes.data());
  refused(FOLDKV_E_ARGUMENT, "model", api.runtime, nullptr, bytes.data());
  refused(FOLDKV_E_ARGUMENT, "bytes", api.runtime, api.model, nullptr);
  check_refused(FOLDKV_E_ARGUMENT, "calibrator", [&](foldkv_error* error) {
    return foldkv_calibrator_load(api.runtime, api.model, bytes.data(), bytes.size(), nullptr, error);
  });
  auto options = api.model_options();
  options.name = "another";
  foldkv_model* other = nullptr;
  REQUIRE(foldkv_model_create(&options, &other, nullptr) == FOLDKV_OK);
  refused(FOLDKV_E_MISMATCH, "", api.runtime, other, bytes.data());
  foldkv_model_release(other);
  bytes[bytes.size() / 2] ^= 1;
  refused(FOLDKV_E_CORRUPT, "", api.runtime, api.model, bytes.data());
}

TEST_CASE("a calibrator attaches to empty exact sequences only") {
  Api api;
  const Calibration calibration(api);
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_calibrator_attach(calibration.calibrator, api.sequence, &error) == FOLDKV_E_STATE);
  CHECK(std::string(error.argument) == "sequence");
  foldkv_sequence_release(api.sequence);
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, nullptr, nullptr, &api.sequence, nullptr) == FOLDKV_OK);
  REQUIRE(foldkv_calibrator_attach(calibration.calibrator, api.sequence, nullptr) == FOLDKV_OK);
  api.feed(120, 3);
  CHECK(foldkv_calibrator_attach(calibration.calibrator, api.sequence, nullptr) == FOLDKV_E_STATE);
  REQUIRE(foldkv_calibrator_attach(nullptr, api.sequence, nullptr) == FOLDKV_OK);
  api.feed(1, 4);
  foldkv_profile* profile = nullptr;
  REQUIRE(foldkv_calibrator_solve(calibration.calibrator, nullptr, &profile, nullptr) == FOLDKV_OK);
  auto info = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(profile, &info, nullptr) == FOLDKV_OK);
  CHECK(info.calibration_tokens == 116);
  foldkv_profile_release(profile);
}

}  // namespace
}  // namespace foldkv::test
