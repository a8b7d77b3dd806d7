#include "tests/field/field_world.h"

namespace foldkv::test::field {
namespace {

foldkv_tensor rows_of(const std::vector<float>& rows, int64_t tokens, int64_t heads, int64_t size) {
  foldkv_tensor tensor{};
  tensor.data = const_cast<float*>(rows.data());
  tensor.dtype = FOLDKV_F32;
  tensor.rank = 3;
  tensor.shape[0] = tokens;
  tensor.shape[1] = heads;
  tensor.shape[2] = size;
  return tensor;
}

foldkv_band band_of(int32_t bits, int32_t width) {
  foldkv_band band{};
  band.width = width;
  band.bits = bits;
  band.code = bits == 16 ? FOLDKV_CODE_HALF : FOLDKV_CODE_UNIFORM;
  return band;
}

// Bands of the width that is asked for, the same in every group: groups must then be of equal key width.
struct Bands {
  foldkv_band keys, values;
};
Bands bands_of(const World& world, const ProfileChoice& choice) {
  const LayerShape& layer = world.layers()[choice.groups.empty() ? 0 : static_cast<size_t>(choice.groups[0][0])];
  const auto width = choice.latent_width > 0 ? choice.latent_width : static_cast<int32_t>(layer.key_width());
  return {band_of(choice.key_bits, width), band_of(choice.value_bits, width)};
}

Owned<foldkv_calibrator> make_calibrator(const World& world, const ProfileChoice& choice, foldkv_error* error) {
  std::vector<foldkv_layer_group> groups;
  for (const std::vector<int32_t>& layers : choice.groups) {
    groups.push_back(sized<foldkv_layer_group>());
    groups.back().layer_count = static_cast<int32_t>(layers.size());
    groups.back().layers = layers.data();
  }
  auto options = sized<foldkv_calibrator_options>();
  options.layers_per_group = choice.layers_per_group;
  if (!groups.empty()) options.groups = groups.data();
  options.group_count = static_cast<int32_t>(groups.size());
  options.skip_tokens = -1;
  foldkv_calibrator* calibrator = nullptr;
  (void)foldkv_calibrator_create(world.runtime(), world.model(), &options, &calibrator, error);
  return Owned<foldkv_calibrator>(calibrator);
}

void observe(const World& world, foldkv_calibrator* calibrator, const Tokens& text) {
  std::vector<foldkv_tensor> keys;
  std::vector<foldkv_tensor> values;
  for (size_t index = 0; index < world.layers().size(); ++index) {
    const LayerShape& layer = world.layers()[index];
    keys.push_back(rows_of(text.key[index], text.count, layer.kv_heads, layer.head_size));
    values.push_back(rows_of(text.value[index], text.count, layer.kv_heads, layer.head_size));
  }
  foldkv_error error = sized<foldkv_error>();
  REQUIRE_MESSAGE(foldkv_calibrator_observe(calibrator, keys.data(), values.data(), static_cast<int32_t>(keys.size()),
                                            0, &error) == FOLDKV_OK,
                  error.message);
}

}  // namespace

Owned<foldkv_profile> try_calibrate(const World& world, const Tokens& text, const ProfileChoice& choice,
                                    foldkv_error* error) {
  const auto calibrator = make_calibrator(world, choice, error);
  if (calibrator == nullptr) return nullptr;
  observe(world, calibrator.get(), text);
  const Bands bands = bands_of(world, choice);
  auto options = sized<foldkv_solve_options>();
  options.scale_group = choice.scale_group;
  options.rotate = choice.rotate ? 1 : 0;
  options.uncentred = choice.uncentred ? 1 : 0;
  options.correction_rank = choice.correction_rank;
  options.key_bands = &bands.keys;
  options.value_bands = &bands.values;
  options.key_band_count = 1;
  options.value_band_count = 1;
  foldkv_profile* profile = nullptr;
  (void)foldkv_calibrator_solve(calibrator.get(), &options, &profile, error);
  return Owned<foldkv_profile>(profile);
}

Owned<foldkv_profile> calibrate(const World& world, const Tokens& text, const ProfileChoice& choice) {
  foldkv_error error = sized<foldkv_error>();
  Owned<foldkv_profile> profile = try_calibrate(world, text, choice, &error);
  REQUIRE_MESSAGE(profile != nullptr, error.argument, " ", error.message);
  return profile;
}

Owned<foldkv_profile> codec_profile(const World& world, int32_t codec, int32_t bits) {
  auto options = sized<foldkv_codec_options>();
  options.codec = codec;
  options.bits = bits;
  foldkv_profile* profile = nullptr;
  foldkv_error error = sized<foldkv_error>();
  REQUIRE_MESSAGE(foldkv_profile_from_codec(world.model(), &options, &profile, &error) == FOLDKV_OK, error.message);
  return Owned<foldkv_profile>(profile);
}

}  // namespace foldkv::test::field
