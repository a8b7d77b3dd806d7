// Writes the golden snapshots of the version that it is built with, and what they hold, to a folder:
//   ninja write_snapshots && write_snapshots tests/data/snapshots_0_1
// Run once for each released version (packaging/ABI.md); later versions only read the files.
#include <fstream>

#include "tests/golden/snapshots/saved_world.h"

namespace {

using namespace foldkv;
using foldkv::test::kSavedHeadSize;
using foldkv::test::kSavedKvHeads;
using foldkv::test::kSavedLayers;
using foldkv::test::kSavedQueryHeads;
using foldkv::test::saved_numbers;
using foldkv::test::value_or_stop;

void must(const Outcome& outcome) {
  if (outcome) return;
  std::fprintf(stderr, "%s: %s\n", outcome.error().argument, outcome.error().message);
  std::abort();
}

void feed_tokens(Runtime& runtime, Sequence& sequence, int64_t count, uint32_t seed, uint32_t flags = 0) {
  const std::vector<foldkv_feed> feeds = {foldkv::feed(sequence, count, flags)};
  Step step = value_or_stop(Step::begin(runtime, feeds));
  for (int32_t layer = 0; layer < kSavedLayers; ++layer) {
    const auto part = seed * 100 + static_cast<uint32_t>(layer) * 10;
    const auto query = saved_numbers(count * kSavedQueryHeads * kSavedHeadSize, part + 1);
    const auto key = saved_numbers(count * kSavedKvHeads * kSavedHeadSize, part + 2);
    const auto value = saved_numbers(count * kSavedKvHeads * kSavedHeadSize, part + 3);
    std::vector<float> output(query.size());
    auto attend = init<foldkv_attend>();
    attend.query = tensor(query.data(), {count, kSavedQueryHeads, kSavedHeadSize});
    attend.key = tensor(key.data(), {count, kSavedKvHeads, kSavedHeadSize});
    attend.value = tensor(value.data(), {count, kSavedKvHeads, kSavedHeadSize});
    attend.output = tensor(output.data(), {count, kSavedQueryHeads, kSavedHeadSize});
    must(step.attend(layer, attend));
  }
  must(step.commit());
}

Profile learned_profile(Runtime& runtime, const Model& model) {
  Calibrator calibrator = value_or_stop(Calibrator::create(runtime, model, {.layers_per_group = 2}));
  std::vector<std::vector<float>> rows;
  for (uint32_t list = 0; list < 2 * kSavedLayers; ++list) rows.push_back(saved_numbers(200 * kSavedHeadSize, 7 + list));
  std::vector<foldkv_tensor> keys, values;
  for (size_t layer = 0; layer < kSavedLayers; ++layer) {
    keys.push_back(tensor(rows[layer].data(), {200, kSavedKvHeads, kSavedHeadSize}));
    values.push_back(tensor(rows[kSavedLayers + layer].data(), {200, kSavedKvHeads, kSavedHeadSize}));
  }
  foldkv_error error = init<foldkv_error>();
  if (foldkv_calibrator_observe(calibrator.get(), keys.data(), values.data(), kSavedLayers, 0, &error) != FOLDKV_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    std::abort();
  }
  return value_or_stop(calibrator.solve({.latent_width = 10, .bits = 5, .correction_rank = 2}));
}

Profile codec_profile(const Model& model, int32_t codec, int32_t bits) {
  foldkv_codec_options options = init<foldkv_codec_options>();
  options.codec = codec;
  options.bits = bits;
  return value_or_stop(Profile::from_codec(model, options));
}

class Writer {
 public:
  explicit Writer(std::string folder) : folder_(std::move(folder)) {}

  void write(const std::string& name, const Profile* profile, const std::vector<const Sequence*>& sequences,
             int32_t compression = 0) {
    std::vector<const foldkv_sequence*> handles;
    nlohmann::json held;
    for (const Sequence* sequence : sequences) {
      handles.push_back(sequence->get());
      held.push_back(foldkv::test::told_by(*sequence));
    }
    auto options = init<foldkv_save_options>();
    options.compression = compression;
    options.note = name.data();
    options.note_size = name.size();
    foldkv_error error = init<foldkv_error>();
    if (foldkv_sequences_save_file(handles.data(), static_cast<int32_t>(handles.size()), &options,
                                   (folder_ + "/" + name + ".fkvs").c_str(), &error) != FOLDKV_OK) {
      std::fprintf(stderr, "%s\n", error.message);
      std::abort();
    }
    std::ofstream(folder_ + "/" + name + ".json") << held.dump() << "\n";
    if (profile == nullptr) return;
    const std::vector<std::byte> bytes = value_or_stop(profile->save());
    std::ofstream(folder_ + "/" + name + ".fkvp", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string folder_;
};

foldkv_eviction policy(const char* name) {
  foldkv_eviction eviction = init<foldkv_eviction>();
  foldkv_error error = init<foldkv_error>();
  if (foldkv_policy_find(name, &eviction, &error) != FOLDKV_OK) std::abort();
  eviction.budget_tokens = 24;
  eviction.keep_ratio = 0.0;
  if (eviction.window_tokens > 0) eviction.window_tokens = 8;
  return eviction;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  Writer writer(argv[1]);
  Runtime runtime = foldkv::test::saved_runtime("reference");
  const Model model = foldkv::test::saved_model();
  const foldkv_sequence_options short_ends = {.sink_tokens = 2, .recent_tokens = 8, .fold_tokens = 8};

  Sequence exact = value_or_stop(Sequence::create(runtime, model, nullptr));
  feed_tokens(runtime, exact, 40, 1);
  Sequence fork = value_or_stop(exact.fork());
  feed_tokens(runtime, fork, 1, 2);
  writer.write("exact", nullptr, {&exact, &fork}, 5);

  const Profile learned = learned_profile(runtime, model);
  const Profile int8 = codec_profile(model, FOLDKV_CODEC_INTEGER, 8);
  const Profile kivi = codec_profile(model, FOLDKV_CODEC_KIVI, 4);
  for (const auto& [name, profile] : {std::pair{"learned", &learned}, std::pair{"int8", &int8}, std::pair{"kivi", &kivi}}) {
    Sequence sequence = value_or_stop(Sequence::create(runtime, model, profile, short_ends));
    feed_tokens(runtime, sequence, 60, 3);
    for (uint32_t token = 0; token < 12; ++token) feed_tokens(runtime, sequence, 1, 20 + token);
    writer.write(name, profile, {&sequence});
  }

  for (const char* name : {"snapkv", "h2o"}) {
    const foldkv_eviction eviction = policy(name);
    foldkv_sequence_options options = {.eviction = &eviction};
    Sequence ended = value_or_stop(Sequence::create(runtime, model, nullptr, options));
    feed_tokens(runtime, ended, 40, 4);
    feed_tokens(runtime, ended, 3, 5);
    Sequence open = value_or_stop(Sequence::create(runtime, model, nullptr, options));
    feed_tokens(runtime, open, 40, 6, FOLDKV_FEED_CONTINUES);
    writer.write(name, nullptr, {&ended, &open});
  }
  return 0;
}
