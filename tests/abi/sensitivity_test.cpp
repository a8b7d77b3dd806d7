#include <limits>

#include "tests/abi/api_fixture.h"

// Sensitivities: sums, profiles that hold them, and weights of groups.
namespace foldkv::test {
namespace {

constexpr int64_t kVocabulary = 5;

// What a test adds: two rows, of which the second moves.
struct Logits {
  std::vector<float> reference = {0, 1, 2, 3, 4, 0, 0, 0, 0, 0};
  std::vector<float> perturbed = {0, 1, 2, 3, 4, 0, 0, 0, 0, 1};
  foldkv_tensor intact = tensor_of(reference, {2, kVocabulary});
  foldkv_tensor moved = tensor_of(perturbed, {2, kVocabulary});
};

struct Sums {
  explicit Sums(const foldkv_model* model) { REQUIRE(foldkv_sensitivity_create(model, &object, nullptr) == FOLDKV_OK); }
  ~Sums() { foldkv_sensitivity_release(object); }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;
  [[nodiscard]] foldkv_layer_sensitivity of(int32_t layer, int32_t side) const {
    auto figures = sized<foldkv_layer_sensitivity>();
    REQUIRE(foldkv_sensitivity_get(object, layer, side, &figures, nullptr) == FOLDKV_OK);
    return figures;
  }
  foldkv_sensitivity* object = nullptr;
};

TEST_CASE("examples are added, merged and read") {
  const Api api;
  const Logits logits;
  const Sums sums(api.model);
  const Sums more(api.model);
  for (const Sums* each : {&sums, &more}) {
    REQUIRE(foldkv_sensitivity_add(each->object, 1, FOLDKV_VALUES, &logits.intact, &logits.moved, nullptr) ==
            FOLDKV_OK);
  }
  REQUIRE(foldkv_sensitivity_merge(sums.object, more.object, nullptr) == FOLDKV_OK);
  const foldkv_layer_sensitivity figures = sums.of(1, FOLDKV_VALUES);
  // Of five even tokens one gets e times the chance: log((4 + e) / 5) - 1 / 5, and nothing in the other row.
  CHECK(figures.divergence == doctest::Approx(0.5 * (std::log((4.0 + std::exp(1.0)) / 5.0) - 0.2)));
  CHECK(figures.rows == 4);
  CHECK(figures.examples == 2);
  CHECK(figures.struct_size == sizeof figures);
  CHECK(sums.of(1, FOLDKV_KEYS).examples == 0);
}

TEST_CASE("sums check their arguments") {
  const Api api;
  const Logits logits;
  const Sums sums(api.model);
  foldkv_sensitivity* created = nullptr;
  check_refused(FOLDKV_E_ARGUMENT, "model",
                [&](foldkv_error* error) { return foldkv_sensitivity_create(nullptr, &created, error); });
  check_refused(FOLDKV_E_ARGUMENT, "sensitivity",
                [&](foldkv_error* error) { return foldkv_sensitivity_create(api.model, nullptr, error); });
  const auto refused = [&](foldkv_status status, const std::string& argument, int32_t layer, int32_t side,
                           const foldkv_tensor* reference, const foldkv_tensor* perturbed) {
    check_refused(status, argument, [&](foldkv_error* error) {
      return foldkv_sensitivity_add(sums.object, layer, side, reference, perturbed, error);
    });
  };
  const foldkv_tensor* intact = &logits.intact;
  const foldkv_tensor* moved = &logits.moved;
  refused(FOLDKV_E_ARGUMENT, "layer", kLayers, 0, intact, moved);
  refused(FOLDKV_E_ARGUMENT, "side", 0, 2, intact, moved);
  refused(FOLDKV_E_ARGUMENT, "reference", 0, 0, nullptr, moved);
  refused(FOLDKV_E_ARGUMENT, "perturbed", 0, 0, intact, nullptr);
  foldkv_tensor other = logits.moved;
  other.shape[0] = 1;
  refused(FOLDKV_E_ARGUMENT, "perturbed.shape", 0, 0, intact, &other);
  other = logits.intact;
  other.dtype = FOLDKV_F16;
  refused(FOLDKV_E_ARGUMENT, "reference.dtype", 0, 0, &other, moved);
  other = logits.intact;
  other.shape[1] = 0;
  refused(FOLDKV_E_ARGUMENT, "reference.shape", 0, 0, &other, moved);
  std::vector<float> bad = logits.perturbed;
  bad[7] = std::nanf("");
  other = tensor_of(bad, {2, kVocabulary});
  refused(FOLDKV_E_NUMERIC, "perturbed", 0, 0, intact, &other);
  refused(FOLDKV_E_NUMERIC, "reference", 0, 0, &other, moved);
  check_refused(FOLDKV_E_ARGUMENT, "sensitivity", [&](foldkv_error* error) {
    return foldkv_sensitivity_add(nullptr, 0, 0, intact, moved, error);
  });
  CHECK(sums.of(0, FOLDKV_KEYS).examples == 0);
  auto figures = sized<foldkv_layer_sensitivity>();
  check_refused(FOLDKV_E_ARGUMENT, "layer",
                [&](foldkv_error* error) { return foldkv_sensitivity_get(sums.object, -1, 0, &figures, error); });
  check_refused(FOLDKV_E_ARGUMENT, "figures",
                [&](foldkv_error* error) { return foldkv_sensitivity_get(sums.object, 0, 0, nullptr, error); });
  check_refused(FOLDKV_E_ARGUMENT, "other",
                [&](foldkv_error* error) { return foldkv_sensitivity_merge(sums.object, nullptr, error); });
}

TEST_CASE("a profile takes sensitivities, saves them and keeps its fingerprint") {
  const Api api;
  const Logits logits;
  const Sums sums(api.model);
  auto source = sized<foldkv_sensitivity_source>();
  source.scale = 0.05;
  source.seed = 12;
  std::strcpy(source.text, "a text");
  foldkv_profile* made = nullptr;
  check_refused(FOLDKV_E_STATE, "sensitivity", [&](foldkv_error* error) {
    return foldkv_profile_with_sensitivity(api.profile, sums.object, &source, &made, error);
  });
  REQUIRE(foldkv_sensitivity_add(sums.object, 0, FOLDKV_VALUES, &logits.intact, &logits.moved, nullptr) == FOLDKV_OK);
  const auto refused = [&](const std::string& argument, const auto& change) {
    foldkv_sensitivity_source given = source;
    change(given);
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_with_sensitivity(api.profile, sums.object, &given, &made, error);
    });
    CHECK(made == nullptr);
  };
  refused("source.scale", [](auto& given) { given.scale = -1.0; });
  refused("source.text", [](auto& given) { std::memset(given.text, 'x', sizeof given.text); });
  refused("source.reserved", [](auto& given) { given.reserved = 1; });
  refused("source.struct_size", [](auto& given) { given.struct_size = 0; });
  REQUIRE(foldkv_profile_with_sensitivity(api.profile, sums.object, &source, &made, nullptr) == FOLDKV_OK);

  size_t size = 0;
  REQUIRE(foldkv_profile_save(made, nullptr, 0, &size, nullptr) == FOLDKV_OK);
  std::vector<unsigned char> bytes(size);
  REQUIRE(foldkv_profile_save(made, bytes.data(), size, &size, nullptr) == FOLDKV_OK);
  foldkv_profile* loaded = nullptr;
  REQUIRE(foldkv_profile_load(bytes.data(), size, &loaded, nullptr) == FOLDKV_OK);
  auto figures = sized<foldkv_layer_sensitivity>();
  REQUIRE(foldkv_profile_get_sensitivity(loaded, 0, FOLDKV_VALUES, &figures, nullptr) == FOLDKV_OK);
  CHECK(figures.divergence == sums.of(0, FOLDKV_VALUES).divergence);
  CHECK(figures.examples == 1);
  auto read = sized<foldkv_sensitivity_source>();
  REQUIRE(foldkv_profile_get_sensitivity_source(loaded, &read, nullptr) == FOLDKV_OK);
  CHECK(read.scale == 0.05);
  CHECK(read.seed == 12);
  CHECK(std::string(read.text) == "a text");
  auto before = sized<foldkv_profile_info>();
  auto after = sized<foldkv_profile_info>();
  REQUIRE(foldkv_profile_get_info(api.profile, &before, nullptr) == FOLDKV_OK);
  REQUIRE(foldkv_profile_get_info(loaded, &after, nullptr) == FOLDKV_OK);
  CHECK(before.fingerprint == after.fingerprint);
  foldkv_profile_release(loaded);
  foldkv_profile_release(made);
}

TEST_CASE("a profile without sensitivities says so") {
  const Api api;
  auto figures = sized<foldkv_layer_sensitivity>();
  figures.examples = 9;
  REQUIRE(foldkv_profile_get_sensitivity(api.profile, 1, FOLDKV_KEYS, &figures, nullptr) == FOLDKV_OK);
  CHECK(figures.examples == 0);
  auto source = sized<foldkv_sensitivity_source>();
  check_refused(FOLDKV_E_STATE, "profile", [&](foldkv_error* error) {
    return foldkv_profile_get_sensitivity_source(api.profile, &source, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "source", [&](foldkv_error* error) {
    return foldkv_profile_get_sensitivity_source(api.profile, nullptr, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "layer", [&](foldkv_error* error) {
    return foldkv_profile_get_sensitivity(api.profile, kLayers, 0, &figures, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "side", [&](foldkv_error* error) {
    return foldkv_profile_get_sensitivity(api.profile, 0, -1, &figures, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "profile", [&](foldkv_error* error) {
    return foldkv_profile_get_sensitivity(nullptr, 0, 0, &figures, error);
  });
}

TEST_CASE("weights of groups are measured over expected costs") {
  const Api api;
  auto group = sized<foldkv_group_info>();
  REQUIRE(foldkv_profile_get_group(api.profile, 0, 0, &group, nullptr) == FOLDKV_OK);
  auto plan = sized<foldkv_plan_info>();
  REQUIRE(foldkv_profile_get_plan(api.profile, 0, &plan, nullptr) == FOLDKV_OK);
  CHECK(group.expected_key_cost + group.expected_value_cost == doctest::Approx(plan.expected_cost));
  double measured[2] = {3.0 * group.expected_key_cost, group.expected_value_cost};
  double weights[2] = {};
  REQUIRE(foldkv_profile_group_weights(api.profile, 0, measured, weights, 2, nullptr) == FOLDKV_OK);
  CHECK(weights[0] == doctest::Approx(1.5));
  CHECK(weights[1] == doctest::Approx(0.5));
  const auto refused = [&](const std::string& argument, int32_t index, const double* given, double* out, int32_t room) {
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_group_weights(api.profile, index, given, out, room, error);
    });
  };
  refused("plan", 1, measured, weights, 2);
  refused("measured", 0, nullptr, weights, 2);
  refused("weights", 0, measured, nullptr, 2);
  refused("capacity", 0, measured, weights, 1);
  measured[1] = 0.0;
  refused("measured[0][1]", 0, measured, weights, 2);

  auto options = sized<foldkv_plan_options>();
  options.name = "small";
  options.ratio = 4.0;
  options.group_weights = weights;
  foldkv_profile* planned = nullptr;
  REQUIRE(foldkv_profile_plan(api.profile, &options, 1, &planned, nullptr) == FOLDKV_OK);
  foldkv_profile_release(planned);
  weights[0] = -1.0;
  check_refused(FOLDKV_E_ARGUMENT, "plans[0].group_weights[0][0]", [&](foldkv_error* error) {
    return foldkv_profile_plan(api.profile, &options, 1, &planned, error);
  });
}

}  // namespace
}  // namespace foldkv::test
