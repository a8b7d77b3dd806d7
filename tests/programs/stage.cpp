#include "tests/programs/stage.h"

#include <array>
#include <cmath>
#include <memory>

#include "tests/programs/mismatch.h"
#include "tests/support/layer_descriptions.h"
#include "tests/support/split_mix.h"

namespace foldkv::test::programs {
namespace {

constexpr int64_t kCalibrationTokens = 160;

LayerShape shape_of(int32_t number, int32_t layer) {
  constexpr std::array<int32_t, 6> kHeadSizes = {8, 4, 16, 6, 12, 10};
  LayerShape shape;
  shape.kv_heads = 1 + number / 3 % 2;
  shape.query_heads = shape.kv_heads * (1 + number / 2 % 2);
  shape.head_size = kHeadSizes[static_cast<size_t>(number % 6)];
  shape.window = number % 4 == 3 && layer % 2 == 1 ? 7 : 0;
  shape.soft_cap = number % 5 == 4 ? 5.0 : 0.0;
  shape.pairing = number % 2 == 0 ? FOLDKV_PAIRING_HALF_SPLIT : FOLDKV_PAIRING_INTERLEAVED;
  const int32_t rotated = number % 7 == 6 ? 0 : shape.head_size - shape.head_size % 4;
  for (int32_t pair = 0; pair < rotated / 2; ++pair) shape.frequencies.push_back(std::pow(10.0, -pair));
  return shape;
}

foldkv_tensor tensor_of(std::vector<float>& rows, const LayerShape& layer) {
  foldkv_tensor tensor{};
  tensor.data = rows.data();
  tensor.dtype = FOLDKV_F32;
  tensor.rank = 3;
  tensor.shape[0] = kCalibrationTokens;
  tensor.shape[1] = layer.kv_heads;
  tensor.shape[2] = layer.head_size;
  return tensor;
}

Owned<foldkv_runtime> small_runtime() {
  auto options = sized<foldkv_runtime_options>();
  options.backend = "reference";
  options.budget_bytes = 16u << 20;
  options.threads = 1;
  foldkv_runtime* runtime = nullptr;
  expect(foldkv_runtime_create(&options, &runtime, nullptr) == FOLDKV_OK, "no runtime to calibrate with");
  return Owned<foldkv_runtime>(runtime);
}

Owned<foldkv_calibrator> observed(foldkv_runtime* runtime, const foldkv_model* model,
                                  const std::vector<LayerShape>& layers) {
  auto options = sized<foldkv_calibrator_options>();
  options.layers_per_group = 2;
  foldkv_calibrator* made = nullptr;
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_calibrator_create(runtime, model, &options, &made, &error) == FOLDKV_OK, error.message);
  Owned<foldkv_calibrator> calibrator(made);
  SplitMix numbers(7);
  std::vector<std::vector<float>> rows(2 * layers.size());
  std::vector<foldkv_tensor> keys;
  std::vector<foldkv_tensor> values;
  for (size_t index = 0; index < rows.size(); ++index) {
    const LayerShape& layer = layers[index / 2];
    rows[index].resize(static_cast<size_t>(kCalibrationTokens * layer.key_width()));
    for (float& number : rows[index]) number = numbers.next_number();
    (index % 2 == 0 ? keys : values).push_back(tensor_of(rows[index], layer));
  }
  expect(foldkv_calibrator_observe(made, keys.data(), values.data(), static_cast<int32_t>(layers.size()), 0, &error) ==
             FOLDKV_OK,
         error.message);
  return calibrator;
}

Owned<foldkv_profile> solved(const foldkv_calibrator* calibrator, const foldkv_solve_options& options) {
  foldkv_profile* profile = nullptr;
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_calibrator_solve(calibrator, &options, &profile, &error) == FOLDKV_OK, error.message);
  return Owned<foldkv_profile>(profile);
}

}  // namespace

const char* name_of(Recipe recipe) {
  constexpr std::array<const char*, kRecipeCount> kNames = {
      "exact", "int8", "int4", "kivi4", "kivi2", "xkv", "xkv4", "minicache", "kvsharer", "learned", "uncentred", "plans"};
  return kNames[static_cast<size_t>(recipe)];
}

const Stage& Stage::of(int32_t number) {
  static std::array<std::unique_ptr<const Stage>, kCount> stages;
  std::unique_ptr<const Stage>& stage = stages[static_cast<size_t>(number)];
  if (stage == nullptr) stage = std::make_unique<const Stage>(number);
  return *stage;
}

Stage::Stage(int32_t number) : profiles_(kRecipeCount), grouped_(kRecipeCount), sources_(kRecipeCount) {
  for (int32_t layer = 0; layer < 2 + number % 3; ++layer) layers_.push_back(shape_of(number, layer));
  make_model();
  make_profiles();
}

void Stage::make_model() {
  const LayerDescriptions descriptions(layers_);
  const foldkv_model_options options = descriptions.options();
  foldkv_model* model = nullptr;
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_model_create(&options, &model, &error) == FOLDKV_OK, error.message);
  model_.reset(model);
}

void Stage::make_profiles() {
  add_codec(Recipe::kInteger8, FOLDKV_CODEC_INTEGER, 8);
  add_codec(Recipe::kInteger4, FOLDKV_CODEC_INTEGER, 4);
  add_codec(Recipe::kKivi4, FOLDKV_CODEC_KIVI, 4);
  add_codec(Recipe::kKivi2, FOLDKV_CODEC_KIVI, 2);
  add_codec(Recipe::kXkv, FOLDKV_CODEC_XKV, 0);
  add_codec(Recipe::kXkv4, FOLDKV_CODEC_XKV, 4);
  add_codec(Recipe::kMiniCache, FOLDKV_CODEC_MINICACHE, 0);
  add_codec(Recipe::kKvSharer, FOLDKV_CODEC_KVSHARER, 0);
  add_learned();
  for (int32_t recipe = 0; recipe < kRecipeCount; ++recipe) describe(static_cast<Recipe>(recipe));
}

// NULL where the library refuses, as it does for codecs of pairs of layers when a model has none.
void Stage::add_codec(Recipe recipe, int32_t codec, int32_t bits) {
  auto options = sized<foldkv_codec_options>();
  options.codec = codec;
  options.bits = bits;
  options.layers_per_group = codec == FOLDKV_CODEC_XKV ? 2 : 0;
  std::vector<int32_t> sources;
  for (int32_t layer = 0; layer < layer_count(); ++layer) sources.push_back(layer % 2 == 0 ? layer : layer - 1);
  if (codec == FOLDKV_CODEC_KVSHARER) options.sources = sources.data();
  foldkv_profile* profile = nullptr;
  (void)foldkv_profile_from_codec(model(), &options, &profile, nullptr);
  profiles_[static_cast<size_t>(recipe)].reset(profile);
}

void Stage::add_learned() {
  const Owned<foldkv_runtime> runtime = small_runtime();
  const Owned<foldkv_calibrator> calibrator = observed(runtime.get(), model(), layers_);
  auto options = sized<foldkv_solve_options>();
  options.bits = 4;
  options.scale_group = 8;
  options.correction_rank = 2;
  profiles_[static_cast<size_t>(Recipe::kLearned)] = solved(calibrator.get(), options);
  options = sized<foldkv_solve_options>();
  options.bits = 6;
  options.uncentred = 1;
  options.rotate = 1;
  profiles_[static_cast<size_t>(Recipe::kUncentred)] = solved(calibrator.get(), options);
  options = sized<foldkv_solve_options>();
  options.scale_group = 8;
  options.latent_width = 1 << 10;
  const Owned<foldkv_profile> wide = solved(calibrator.get(), options);
  std::vector<foldkv_plan_options> plans(3, sized<foldkv_plan_options>());
  plans_ = {"wide", "middle", "narrow"};
  for (size_t index = 0; index < plans.size(); ++index) {
    plans[index].name = plans_[index].c_str();
    plans[index].ratio = std::array<double, 3>{2.0, 3.0, 5.0}[index];
  }
  foldkv_profile* planned = nullptr;
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_profile_plan(wide.get(), plans.data(), 3, &planned, &error) == FOLDKV_OK, error.message);
  profiles_[static_cast<size_t>(Recipe::kPlans)].reset(planned);
}

void Stage::describe(Recipe recipe) {
  std::vector<bool>& grouped = grouped_[static_cast<size_t>(recipe)];
  std::vector<int32_t>& sources = sources_[static_cast<size_t>(recipe)];
  grouped.assign(layers_.size(), false);
  for (int32_t layer = 0; layer < layer_count(); ++layer) sources.push_back(layer);
  if (profile(recipe) == nullptr) return;
  (void)foldkv_profile_get_sources(profile(recipe), sources.data(), layer_count(), nullptr);
  auto info = sized<foldkv_profile_info>();
  expect(foldkv_profile_get_info(profile(recipe), &info, nullptr) == FOLDKV_OK, "no information of a profile");
  for (int32_t group = 0; group < info.group_count; ++group) {
    auto about = sized<foldkv_group_info>();
    expect(foldkv_profile_get_group(profile(recipe), 0, group, &about, nullptr) == FOLDKV_OK, "no group");
    std::vector<int32_t> layers(static_cast<size_t>(about.layer_count));
    expect(foldkv_profile_get_layers(profile(recipe), group, layers.data(), about.layer_count, nullptr) == FOLDKV_OK,
           "no layers");
    for (const int32_t layer : layers) grouped[static_cast<size_t>(layer)] = true;
  }
}

}  // namespace foldkv::test::programs
