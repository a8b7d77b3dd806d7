// A profile file from anywhere: loading it, every function that reads a profile, profiles made from it, and a short
// life of a sequence when it is for the model of world.h.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "foldkv/foldkv.h"
#include "runtime/profile/profile_generated.h"
#include "runtime/profile/profile_reader.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/seal.h"
#include "tests/fuzz/world.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace foldkv::fuzz {
namespace {

// States the fingerprint that the content has, where the content is sound.
void state_fingerprint(uint8_t* data, size_t size) {
  const StatusOr<ProfileFile> file = read_profile_file(data, size);
  if (!file.ok()) return;
  const flatbuffers::Table* root = flatbuffers::GetRoot<flatbuffers::Table>(data);
  const uint8_t* stated = root->GetAddressOf(file::Profile::VT_FINGERPRINT);
  if (stated == nullptr) return;
  std::memcpy(data + (stated - data), &file->profile.fingerprint, sizeof(uint64_t));
}

void read_side(const foldkv_profile* profile, int32_t plan, int32_t group, const foldkv_group_info& info,
               int32_t side) {
  const int32_t bands = side == FOLDKV_KEYS ? info.key_band_count : info.value_band_count;
  std::vector<foldkv_band> read(static_cast<size_t>(bands));
  must(allowed(foldkv_profile_get_bands(profile, plan, group, side, read.data(), bands, nullptr)),
       "bands are readable");
  std::vector<double> variances(static_cast<size_t>(info.layer_count) * static_cast<size_t>(info.key_width));
  must(allowed(foldkv_profile_get_variances(profile, group, side, variances.data(),
                                            static_cast<int32_t>(variances.size()), nullptr)),
       "variances are readable");
}

void read_groups(const foldkv_profile* profile, const foldkv_profile_info& info) {
  for (int32_t group = 0; group < info.group_count; ++group) {
    for (int32_t plan = 0; plan < info.plan_count; ++plan) {
      auto read = sized<foldkv_group_info>();
      must(allowed(foldkv_profile_get_group(profile, plan, group, &read, nullptr)), "the group is readable");
      std::vector<int32_t> layers(static_cast<size_t>(read.layer_count));
      must(allowed(foldkv_profile_get_layers(profile, group, layers.data(), read.layer_count, nullptr)),
           "layers are readable");
      for (int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) read_side(profile, plan, group, read, side);
    }
  }
}

void read_figures(const foldkv_profile* profile, const foldkv_profile_info& info) {
  for (int32_t plan = 0; plan < info.plan_count; ++plan) {
    auto read = sized<foldkv_plan_info>();
    must(allowed(foldkv_profile_get_plan(profile, plan, &read, nullptr)), "the plan is readable");
  }
  std::vector<int32_t> sources(static_cast<size_t>(info.layer_count));
  must(allowed(foldkv_profile_get_sources(profile, sources.data(), info.layer_count, nullptr)), "sources are readable");
  for (int32_t layer = 0; layer < info.layer_count; ++layer) {
    for (int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
      auto figures = sized<foldkv_layer_sensitivity>();
      must(allowed(foldkv_profile_get_sensitivity(profile, layer, side, &figures, nullptr)), "figures are readable");
    }
  }
  auto source = sized<foldkv_sensitivity_source>();
  (void)allowed(foldkv_profile_get_sensitivity_source(profile, &source, nullptr));
}

// What this library has read it writes, and reads again.
void save_again(const foldkv_profile* profile) {
  size_t size = 0;
  must(allowed(foldkv_profile_save(profile, nullptr, 0, &size, nullptr)), "the profile can be written");
  std::vector<uint8_t> bytes(size);
  must(allowed(foldkv_profile_save(profile, bytes.data(), size, &size, nullptr)), "the profile can be written");
  foldkv_profile* again = nullptr;
  must(allowed(foldkv_profile_load(bytes.data(), size, &again, nullptr)), "what was written can be read");
  foldkv_profile_release(again);
}

void make_others(const foldkv_profile* profile, const foldkv_profile_info& info) {
  foldkv_profile* made = nullptr;
  if (allowed(foldkv_profile_record_divergence(profile, nullptr, 0.5, 10, &made, nullptr)))
    foldkv_profile_release(made);
  auto plan = sized<foldkv_plan_options>();
  plan.name = "eight";
  plan.ratio = 8.0;
  if (allowed(foldkv_profile_plan(profile, &plan, 1, &made, nullptr))) foldkv_profile_release(made);
  const std::vector<double> measured(2 * static_cast<size_t>(info.group_count), 1.0);
  std::vector<double> weights(measured.size());
  (void)allowed(foldkv_profile_group_weights(profile, 0, measured.data(), weights.data(),
                                             static_cast<int32_t>(weights.size()), nullptr));
  auto wish = sized<foldkv_plan_wish>();
  wish.budget_bytes = 1u << 20;
  wish.tokens = 100;
  auto choice = sized<foldkv_plan_choice>();
  (void)allowed(foldkv_profile_choose_plan(runtime(), model(), profile, &wish, &choice, nullptr));
}

// 40 tokens, most of which become latents, and two that attend to them.
void live(const foldkv_profile* profile, const char* plan) {
  auto options = sized<foldkv_sequence_options>();
  options.plan = plan;
  options.sink_tokens = -1;
  options.recent_tokens = 2;
  foldkv_sequence* sequence = nullptr;
  if (!allowed(foldkv_sequence_create(runtime(), model(), profile, &options, &sequence, nullptr))) return;
  if (feed(sequence, 40) && feed(sequence, 1) && feed(sequence, 1)) {
    std::vector<float> rows(static_cast<size_t>(42 * kKeyWidth));
    auto rebuild = sized<foldkv_rebuild_options>();
    rebuild.layer = kLayers - 1;
    const foldkv_tensor output = rows_of(rows, 42, kKvHeads);
    (void)allowed(foldkv_sequence_rebuild(sequence, &rebuild, &output, nullptr));
  }
  foldkv_sequence_release(sequence);
}

}  // namespace
}  // namespace foldkv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foldkv::fuzz;
  foldkv_profile* profile = nullptr;
  if (!allowed(foldkv_profile_load(data, size, &profile, nullptr))) return 0;
  ++accepted;
  auto info = sized<foldkv_profile_info>();
  must(allowed(foldkv_profile_get_info(profile, &info, nullptr)), "the profile says what it is");
  read_groups(profile, info);
  read_figures(profile, info);
  save_again(profile);
  make_others(profile, info);
  if (allowed(foldkv_profile_check(profile, model(), nullptr))) {
    auto plan = sized<foldkv_plan_info>();
    must(allowed(foldkv_profile_get_plan(profile, info.plan_count - 1, &plan, nullptr)), "the plan is readable");
    live(profile, plan.name);
  }
  foldkv_profile_release(profile);
  return 0;
}

// Half of the files keep a checksum that fits, half of those a fingerprint that does.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 == 0) return size;
  size = foldkv::fuzz::seal(data, size);
  if (seed % 4 == 1) return size;
  foldkv::fuzz::state_fingerprint(data, size);
  return foldkv::fuzz::seal(data, size);
}
