#include "tests/field/field_world.h"

#include "tests/support/layer_descriptions.h"

namespace foldkv::test::field {

Owned<foldkv_runtime> open_runtime(const WorldChoice& choice) {
  auto options = sized<foldkv_runtime_options>();
  options.backend = choice.backend;
  options.threads = choice.threads;
  options.budget_bytes = choice.budget;
  options.instruction_set = choice.instruction_set;
  foldkv_runtime* runtime = nullptr;
  foldkv_error error = sized<foldkv_error>();
  REQUIRE_MESSAGE(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_OK, error.message);
  return Owned<foldkv_runtime>(runtime);
}

Owned<foldkv_model> make_model(const std::vector<LayerShape>& layers, foldkv_error* error) {
  const LayerDescriptions descriptions(layers);
  const foldkv_model_options options = descriptions.options();
  foldkv_model* model = nullptr;
  if (foldkv_model_create(&options, &model, error) != FOLDKV_OK) CHECK(model == nullptr);
  return Owned<foldkv_model>(model);
}

World::World(std::vector<LayerShape> layers, const WorldChoice& choice)
    : layers_(std::move(layers)), runtime_(open_runtime(choice)) {
  foldkv_error error = sized<foldkv_error>();
  model_ = make_model(layers_, &error);
  REQUIRE_MESSAGE(model_ != nullptr, error.message);
}

foldkv_runtime_stats World::stats() const {
  auto stats = sized<foldkv_runtime_stats>();
  REQUIRE(foldkv_runtime_get_stats(runtime(), &stats, nullptr) == FOLDKV_OK);
  return stats;
}

foldkv_sequence_options f32_options() {
  auto options = sized<foldkv_sequence_options>();
  options.dtype = FOLDKV_F32;
  return options;
}

Owned<foldkv_sequence> make_sequence(const World& world, const foldkv_profile* profile,
                                     const foldkv_sequence_options& options) {
  foldkv_sequence* sequence = nullptr;
  foldkv_error error = sized<foldkv_error>();
  REQUIRE_MESSAGE(
      foldkv_sequence_create(world.runtime(), world.model(), profile, &options, &sequence, &error) == FOLDKV_OK,
      error.argument, " ", error.message);
  return Owned<foldkv_sequence>(sequence);
}

foldkv_eviction policy_of(const char* name) {
  auto eviction = sized<foldkv_eviction>();
  REQUIRE(foldkv_policy_find(name, &eviction, nullptr) == FOLDKV_OK);
  return eviction;
}

foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(sequence, &stats, nullptr) == FOLDKV_OK);
  return stats;
}

}  // namespace foldkv::test::field
