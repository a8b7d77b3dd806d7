#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

std::vector<unsigned char> saved(const foldkv_profile* profile) {
  size_t size = 0;
  REQUIRE(foldkv_profile_save(profile, nullptr, 0, &size, nullptr) == FOLDKV_OK);
  std::vector<unsigned char> bytes(size);
  REQUIRE(foldkv_profile_save(profile, bytes.data(), bytes.size(), &size, nullptr) == FOLDKV_OK);
  CHECK(size == bytes.size());
  return bytes;
}

TEST_CASE("a profile survives saving and loading, and says what it holds") {
  const Api api;
  const std::vector<unsigned char> bytes = saved(api.profile);
  foldkv_profile* loaded = nullptr;
  REQUIRE(foldkv_profile_load(bytes.data(), bytes.size(), &loaded, nullptr) == FOLDKV_OK);
  CHECK(saved(loaded) == bytes);
  CHECK(foldkv_profile_check(loaded, api.model, nullptr) == FOLDKV_OK);
  auto info = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(loaded, &info, nullptr) == FOLDKV_OK);
  CHECK(info.layer_count == kLayers);
  CHECK(info.group_count == 1);
  CHECK(info.centred == 1);
  CHECK(info.calibration_tokens == 196);
  CHECK(info.calibration_samples == 1);
  CHECK(info.model_fingerprint == foldkv_model_fingerprint(api.model));
  CHECK(std::string(info.model_name) == "small");
  CHECK(std::string(info.made_by) == "foldkv 0.1.0");
  CHECK(info.plan_count == 1);
  auto plan = sized<foldkv_plan_info>();
  REQUIRE(foldkv_profile_get_plan(loaded, 0, &plan, nullptr) == FOLDKV_OK);
  CHECK(std::string(plan.name) == "default");
  CHECK(plan.bytes_per_token == 2 * (8 + 2));
  CHECK(plan.full_bytes_per_token == 2 * 2 * 32);
  auto group = sized<foldkv_group_info>();
  REQUIRE(foldkv_profile_get_group(loaded, 0, 0, &group, nullptr) == FOLDKV_OK);
  CHECK(group.layer_count == 2);
  CHECK(group.key_width == 16);
  CHECK(group.key_latent_width == 16);
  CHECK(group.bytes_per_token == 2 * (8 + 2));
  CHECK(group.bytes_per_sequence == 2 * 32 * 2);
  int32_t layers[2] = {};
  REQUIRE(foldkv_profile_get_layers(loaded, 0, layers, 2, nullptr) == FOLDKV_OK);
  CHECK(layers[1] == 1);
  foldkv_band band{};
  REQUIRE(foldkv_profile_get_bands(loaded, 0, 0, FOLDKV_VALUES, &band, 1, nullptr) == FOLDKV_OK);
  CHECK(band.width == 16);
  CHECK(band.bits == 4);
  std::vector<double> variances(32);
  REQUIRE(foldkv_profile_get_variances(loaded, 0, FOLDKV_KEYS, variances.data(), 32, nullptr) == FOLDKV_OK);
  for (size_t i = 1; i < variances.size(); ++i) CHECK(variances[i] <= variances[i - 1]);
  CHECK(variances[31] >= 0.0);
  foldkv_profile_release(loaded);
}

TEST_CASE("published codecs become profiles, and wrong wishes are refused by name") {
  const Api api;
  auto options = sized<foldkv_codec_options>();
  foldkv_profile* profile = nullptr;
  const auto refused = [&](const char* argument) {
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_from_codec(api.model, &options, &profile, error);
    });
    CHECK(profile == nullptr);
  };
  refused("options.codec");
  options.codec = FOLDKV_CODEC_INTEGER;
  options.bits = 9;
  refused("options.bits");
  options.bits = 0;
  options.codec = FOLDKV_CODEC_KVSHARER;
  refused("options.sources");
  const int32_t forward[kLayers] = {1, 1};
  options.sources = forward;
  refused("options.sources[0]");
  options.codec = FOLDKV_CODEC_MINICACHE;
  options.retained = 2.0;
  refused("options.retained");
  options.retained = 0.0;
  options.first_layer = kLayers;
  refused("options.first_layer");
  options.codec = FOLDKV_CODEC_XKV;
  options.key_rank = -1;
  refused("options.key_rank");
  check_refused(FOLDKV_E_ARGUMENT, "model", [&](foldkv_error* error) {
    return foldkv_profile_from_codec(nullptr, &options, &profile, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "options", [&](foldkv_error* error) {
    return foldkv_profile_from_codec(api.model, nullptr, &profile, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "profile", [&](foldkv_error* error) {
    return foldkv_profile_from_codec(api.model, &options, nullptr, error);
  });

  options = sized<foldkv_codec_options>();
  options.codec = FOLDKV_CODEC_KVSHARER;
  const int32_t shared[kLayers] = {0, 0};
  options.sources = shared;
  REQUIRE(foldkv_profile_from_codec(api.model, &options, &profile, nullptr) == FOLDKV_OK);
  int32_t read[kLayers] = {7, 7};
  REQUIRE(foldkv_profile_get_sources(profile, read, kLayers, nullptr) == FOLDKV_OK);
  CHECK(read[1] == 0);
  foldkv_profile_release(profile);
  options = sized<foldkv_codec_options>();
  options.codec = FOLDKV_CODEC_XKV;
  options.key_rank = 3;
  options.value_rank = 5;
  REQUIRE(foldkv_profile_from_codec(api.model, &options, &profile, nullptr) == FOLDKV_OK);
  CHECK(foldkv_profile_check(profile, api.model, nullptr) == FOLDKV_OK);
  auto group = sized<foldkv_group_info>();
  REQUIRE(foldkv_profile_get_group(profile, 0, 0, &group, nullptr) == FOLDKV_OK);
  CHECK(group.kind == FOLDKV_GROUP_SEQUENCE);
  CHECK(group.bytes_per_token == 2 * (3 + 5));
  CHECK(group.bytes_per_sequence == group.layer_count * group.key_width * (3 + 5) * 4);
  foldkv_band band{};
  REQUIRE(foldkv_profile_get_bands(profile, 0, 0, FOLDKV_VALUES, &band, 1, nullptr) == FOLDKV_OK);
  CHECK(band.code == FOLDKV_CODE_HALF);
  int32_t sources[kLayers] = {};
  REQUIRE(foldkv_profile_get_sources(profile, sources, kLayers, nullptr) == FOLDKV_OK);
  CHECK(sources[1] == 1);
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_profile_get_sources(profile, sources, kLayers - 1, error);
  });
  CHECK(band.bits == 16);
  foldkv_profile_release(profile);
}

TEST_CASE("what was measured of a plan is recorded in a new profile") {
  const Api api;
  foldkv_profile* recorded = nullptr;
  const auto refused = [&](const std::string& argument, const foldkv_profile* profile, const char* plan,
                           double divergence, int64_t tokens) {
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_record_divergence(profile, plan, divergence, tokens, &recorded, error);
    });
    CHECK(recorded == nullptr);
  };
  refused("profile", nullptr, "default", 0.5, 10);
  refused("plan", api.profile, "other", 0.5, 10);
  refused("divergence", api.profile, "default", -0.5, 10);
  refused("divergence", api.profile, "default", NAN, 10);
  refused("tokens", api.profile, "default", 0.5, 0);
  check_refused(FOLDKV_E_ARGUMENT, "recorded", [&](foldkv_error* error) {
    return foldkv_profile_record_divergence(api.profile, "default", 0.5, 10, nullptr, error);
  });
  REQUIRE(foldkv_profile_record_divergence(api.profile, nullptr, 0.5, 10, &recorded, nullptr) == FOLDKV_OK);
  auto plan = sized<foldkv_plan_info>();
  REQUIRE(foldkv_profile_get_plan(recorded, 0, &plan, nullptr) == FOLDKV_OK);
  CHECK(plan.held_out_divergence == 0.5);
  CHECK(plan.held_out_tokens == 10);
  REQUIRE(foldkv_profile_get_plan(api.profile, 0, &plan, nullptr) == FOLDKV_OK);
  CHECK(plan.held_out_tokens == 0);
  foldkv_profile_release(recorded);
}

TEST_CASE("getters refuse what is not there") {
  const Api api;
  auto group = sized<foldkv_group_info>();
  for (int32_t index : {-1, 1}) {
    check_refused(FOLDKV_E_ARGUMENT, "group", [&](foldkv_error* error) {
      return foldkv_profile_get_group(api.profile, 0, index, &group, error);
    });
  }
  int32_t layers[2] = {};
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_profile_get_layers(api.profile, 0, layers, 1, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "layers", [&](foldkv_error* error) {
    return foldkv_profile_get_layers(api.profile, 0, nullptr, 2, error);
  });
  foldkv_band band{};
  check_refused(FOLDKV_E_ARGUMENT, "side", [&](foldkv_error* error) {
    return foldkv_profile_get_bands(api.profile, 0, 0, 2, &band, 1, error);
  });
  auto plan = sized<foldkv_plan_info>();
  for (int32_t index : {-1, 1}) {
    check_refused(FOLDKV_E_ARGUMENT, "plan", [&](foldkv_error* error) {
      return foldkv_profile_get_plan(api.profile, index, &plan, error);
    });
    check_refused(FOLDKV_E_ARGUMENT, "plan", [&](foldkv_error* error) {
      return foldkv_profile_get_group(api.profile, index, 0, &group, error);
    });
    check_refused(FOLDKV_E_ARGUMENT, "plan", [&](foldkv_error* error) {
      return foldkv_profile_get_bands(api.profile, index, 0, FOLDKV_KEYS, &band, 1, error);
    });
  }
  double variance = 0.0;
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_profile_get_variances(api.profile, 0, FOLDKV_KEYS, &variance, -1, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "info", [&](foldkv_error* error) {
    return foldkv_profile_get_info(api.profile, nullptr, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "profile", [&](foldkv_error* error) {
    return foldkv_profile_check(nullptr, api.model, error);
  });
  size_t size = 0;
  unsigned char byte = 0;
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_profile_save(api.profile, &byte, 1, &size, error);
  });
  CHECK(size == 0);
}

TEST_CASE("every truncation and every flipped byte is refused as corrupt") {
  const Api api;
  std::vector<unsigned char> bytes = saved(api.profile);
  foldkv_profile* loaded = nullptr;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<unsigned char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const foldkv_status status = foldkv_profile_load(cut.data() == nullptr ? bytes.data() : cut.data(), size, &loaded, nullptr);
    if (status != FOLDKV_E_CORRUPT) FAIL_CHECK("size ", size, " gave ", foldkv_status_name(status));
  }
  for (size_t index = 0; index < bytes.size(); ++index) {
    for (const unsigned char flip : {static_cast<unsigned char>(1), static_cast<unsigned char>(128), static_cast<unsigned char>(255)}) {
      bytes[index] = static_cast<unsigned char>(bytes[index] ^ flip);
      const foldkv_status status = foldkv_profile_load(bytes.data(), bytes.size(), &loaded, nullptr);
      // Version fields may be named as such.
      if (status != FOLDKV_E_CORRUPT && status != FOLDKV_E_VERSION) {
        FAIL_CHECK("byte ", index, " gave ", foldkv_status_name(status));
      }
      bytes[index] = static_cast<unsigned char>(bytes[index] ^ flip);
    }
  }
  CHECK(loaded == nullptr);
}

TEST_CASE("a profile of another model is refused, with the difference in words") {
  Api api;
  std::vector<foldkv_layer> layers = api.layers;
  layers[1].window = 64;
  foldkv_model_options options = api.model_options();
  options.layers = layers.data();
  foldkv_model* other = nullptr;
  REQUIRE(foldkv_model_create(&options, &other, nullptr) == FOLDKV_OK);
  foldkv_error error = sized<foldkv_error>();
  CHECK(foldkv_profile_check(api.profile, other, &error) == FOLDKV_E_MISMATCH);
  CHECK(std::strlen(error.message) > 0);
  foldkv_sequence* sequence = nullptr;
  CHECK(foldkv_sequence_create(api.runtime, other, api.profile, nullptr, &sequence, &error) == FOLDKV_E_MISMATCH);
  foldkv_model_release(other);
  options = api.model_options();
  options.name = "large";
  REQUIRE(foldkv_model_create(&options, &other, nullptr) == FOLDKV_OK);
  CHECK(foldkv_profile_check(api.profile, other, &error) == FOLDKV_E_MISMATCH);
  CHECK(std::string(error.message).find("large") != std::string::npos);
  foldkv_model_release(other);
}

}  // namespace
}  // namespace foldkv::test
