#include "tests/fuzz/world.h"

#include <algorithm>

#include "tests/fuzz/oracle.h"
#include "tests/support/random.h"

namespace foldkv::fuzz {
namespace {

foldkv_runtime* make_runtime() {
  auto options = sized<foldkv_runtime_options>();
  options.backend = FOLDKV_WITH_CPU ? "cpu" : "reference";
  options.budget_bytes = 4u << 20;
  options.threads = 1;
  foldkv_runtime* made = nullptr;
  must(foldkv_runtime_create(&options, &made, nullptr) == FOLDKV_OK, "there is a runtime");
  return made;
}

foldkv_model* make_model() {
  const double frequencies[kHeadSize / 2] = {1.0, 0.01};
  auto rotation = sized<foldkv_rotation>();
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = kHeadSize / 2;
  auto layer = sized<foldkv_layer>();
  layer.query_heads = kQueryHeads;
  layer.kv_heads = kKvHeads;
  layer.head_size = kHeadSize;
  layer.rotation = &rotation;
  const std::vector<foldkv_layer> layers(kLayers, layer);
  auto options = sized<foldkv_model_options>();
  options.layer_count = kLayers;
  options.layers = layers.data();
  foldkv_model* made = nullptr;
  must(foldkv_model_create(&options, &made, nullptr) == FOLDKV_OK, "there is a model");
  return made;
}

}  // namespace

foldkv_runtime* runtime() {
  static foldkv_runtime* const made = make_runtime();
  return made;
}

foldkv_model* model() {
  static foldkv_model* const made = make_model();
  return made;
}

foldkv_profile* snapshot_profile(int32_t index) {
  static const std::vector<foldkv_profile*>& made = *[] {
    auto* const all = new std::vector<foldkv_profile*>{nullptr};
    for (const int32_t codec : {FOLDKV_CODEC_INTEGER, FOLDKV_CODEC_KIVI, FOLDKV_CODEC_XKV, FOLDKV_CODEC_MINICACHE}) {
      auto options = sized<foldkv_codec_options>();
      options.codec = codec;
      foldkv_profile* profile = nullptr;
      must(foldkv_profile_from_codec(model(), &options, &profile, nullptr) == FOLDKV_OK, "a codec's profile");
      all->push_back(profile);
    }
    return all;
  }();
  return made[static_cast<size_t>(index)];
}

std::vector<float> some_numbers(int64_t count, uint64_t seed) {
  test::Random random(seed);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random.uniform(-1.0, 1.0));
  return numbers;
}

foldkv_tensor rows_of(std::vector<float>& numbers, int64_t rows, int32_t heads) {
  foldkv_tensor tensor{};
  tensor.data = numbers.data();
  tensor.dtype = FOLDKV_F32;
  tensor.rank = 3;
  const int64_t shape[] = {rows, heads, kHeadSize};
  std::copy(std::begin(shape), std::end(shape), tensor.shape);
  return tensor;
}

bool feed(foldkv_sequence* sequence, int64_t tokens, uint32_t flags) {
  auto feed = sized<foldkv_feed>();
  feed.sequence = sequence;
  feed.token_count = tokens;
  feed.flags = flags;
  foldkv_step* step = nullptr;
  if (!allowed(foldkv_step_begin(runtime(), &feed, 1, nullptr, &step, nullptr))) return false;
  bool ok = true;
  for (int32_t layer = 0; ok && layer < kLayers; ++layer) {
    std::vector<float> query = some_numbers(tokens * kQueryHeads * kHeadSize, 1);
    std::vector<float> key = some_numbers(tokens * kKeyWidth, 2), value = some_numbers(tokens * kKeyWidth, 3);
    std::vector<float> output(query.size());
    auto attend = sized<foldkv_attend>();
    attend.query = rows_of(query, tokens, kQueryHeads);
    attend.key = rows_of(key, tokens, kKvHeads);
    attend.value = rows_of(value, tokens, kKvHeads);
    attend.output = rows_of(output, tokens, kQueryHeads);
    ok = allowed(foldkv_step_attend(step, layer, &attend, nullptr));
  }
  ok = ok && allowed(foldkv_step_commit(step, nullptr));
  foldkv_step_release(step);
  return ok;
}

}  // namespace foldkv::fuzz
