#include "runtime/policy/codec_profile.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/plan_bits.h"
#include "runtime/profile/profile_reader.h"
#include "runtime/profile/profile_writer.h"
#include "tests/runtime/model/sample_model.h"

namespace foldkv::test {
namespace {

// Six layers of 2 KV heads of 64; layer 3 has a window.
std::shared_ptr<Model> model_with_window() {
  ModelDescription description = sample_description(6);
  for (size_t layer = 0; layer < 6; ++layer) {
    LayerRules& rules = description.layers[layer];
    rules.head_size = 64;
    rules.query_norm.clear();
    rules.key_norm.clear();
    rules.window = layer == 3 ? 32 : 0;
  }
  return Model::create(std::move(description)).value();
}

int64_t bytes_of(const Profile& profile) {
  int64_t bytes = 0;
  for (size_t index = 0; index < profile.groups.size(); ++index) {
    bytes += latent_token_bytes(latent_layout(latent_format(profile.groups[index], profile.plans[0].groups[index])));
  }
  return bytes;
}

TEST_CASE("the bytes of a token are those of the codes' own description") {
  const auto model = model_with_window();
  const auto bytes = [&](const CodecWish& wish) { return bytes_of(make_codec_profile(*model, wish).value()); };
  // Five layers, 128 numbers a side.
  CHECK(bytes({CodecName::kInteger}) == 5 * 2 * (128 + 2 * 2));
  CHECK(bytes({CodecName::kInteger, 4}) == 5 * 2 * (64 + 2 * 2));
  // A scale and a zero of 16 bits for 32 numbers: one bit more for each.
  CHECK(bytes({CodecName::kKivi, 2}) == 5 * 2 * 128 * 3 / 8);
  CHECK(bytes({CodecName::kKivi}) == 5 * 2 * 128 * 5 / 8);
  CodecWish xkv{CodecName::kXkv};
  xkv.key_rank = 10;
  xkv.value_rank = 20;
  // Layers 0, 1, 2, 4 and then 5.
  CHECK(bytes(xkv) == 2 * 2 * (10 + 20));
  // Pair 4-5: a direction in halves, two norms a head, and 4 of 64 tokens of each head with both rows and a slot.
  CHECK(bytes({CodecName::kMiniCache}) == 2 * (128 * 2 + 2 * 2 * 2) + (2 * 2 * (4 + 4 * 2 * 64 * 2) + 63) / 64);
}

TEST_CASE("defaults are those of the papers") {
  const auto model = model_with_window();
  const Profile xkv = make_codec_profile(*model, {CodecName::kXkv}).value();
  REQUIRE(xkv.groups.size() == 2);
  CHECK(xkv.groups[0].layers == std::vector<int32_t>{0, 1, 2, 4});
  CHECK(xkv.groups[0].keys.latent_width == 48);   // 384 of 4,096
  CHECK(xkv.groups[0].values.latent_width == 72);  // 576 of 4,096
  CHECK_FALSE(xkv.centred);
  const Profile merged = make_codec_profile(*model, {CodecName::kMiniCache}).value();
  REQUIRE(merged.groups.size() == 1);
  CHECK(merged.groups[0].layers == std::vector<int32_t>{4, 5});  // from layer 3 on, which has a window
  CHECK(merged.groups[0].merge == MergeRules{2, 64, 4, 0.6f});
  const Profile shared = make_codec_profile(*model, CodecWish{.codec = CodecName::kKvSharer,
                                                              .sources = {0, 0, 1, 3, 4, 2}})
                             .value();
  CHECK(shared.sources == std::vector<int32_t>{0, 0, 0, 3, 4, 0});
}

TEST_CASE("profiles of codecs go through files") {
  const auto model = model_with_window();
  CodecWish shared{CodecName::kKvSharer};
  shared.sources = {0, 1, 0, 3, 4, 1};
  for (const CodecWish& wish :
       {CodecWish{CodecName::kInteger}, CodecWish{CodecName::kKivi, 2}, CodecWish{CodecName::kXkv},
        CodecWish{CodecName::kXkv, 4}, CodecWish{CodecName::kMiniCache}, shared}) {
    const Profile profile = make_codec_profile(*model, wish).value();
    const std::vector<uint8_t> bytes = write_profile(profile).value();
    const auto back = read_profile(bytes.data(), bytes.size());
    REQUIRE_MESSAGE(back.ok(), std::string(back.status().message()));
    CHECK(back->fingerprint == profile.fingerprint);
    CHECK(back->sources == profile.sources);
    CHECK(back->plans == profile.plans);
    for (size_t index = 0; index < profile.groups.size(); ++index) {
      CHECK(back->groups[index].kind == profile.groups[index].kind);
      CHECK(back->groups[index].merge == profile.groups[index].merge);
    }
    CHECK(check_profile(*back, *model).ok());
    // Every changed byte is seen.
    for (size_t place = 0; place < bytes.size(); place += 97) {
      std::vector<uint8_t> changed = bytes;
      changed[place] ^= 0x40;
      CHECK_FALSE(read_profile(changed.data(), changed.size()).ok());
    }
  }
}

TEST_CASE("wishes that make no sense are refused by name") {
  const auto model = model_with_window();
  const auto argument = [&](const CodecWish& wish) { return argument_of(make_codec_profile(*model, wish).status()); };
  CHECK(argument({static_cast<CodecName>(0)}) == "codec");
  CHECK(argument({static_cast<CodecName>(6)}) == "codec");
  CHECK(argument({CodecName::kInteger, 1}) == "bits");
  CHECK(argument({CodecName::kInteger, 9}) == "bits");
  CHECK(argument({CodecName::kKivi, 16}) == "bits");
  CHECK(argument(CodecWish{.codec = CodecName::kXkv, .layers_per_group = -1}) == "layers_per_group");
  CHECK(argument(CodecWish{.codec = CodecName::kXkv, .key_rank = -1}) == "key_rank");
  CHECK(argument(CodecWish{.codec = CodecName::kXkv, .value_rank = -5}) == "value_rank");
  CHECK(argument(CodecWish{.codec = CodecName::kMiniCache, .interpolation = 1.5}) == "interpolation");
  CHECK(argument(CodecWish{.codec = CodecName::kMiniCache, .retained = -0.1}) == "retained");
  CHECK(argument(CodecWish{.codec = CodecName::kMiniCache, .first_layer = 6}) == "first_layer");
  CHECK(argument(CodecWish{.codec = CodecName::kMiniCache, .first_layer = 5}) == "first_layer");
  CHECK(argument(CodecWish{.codec = CodecName::kKvSharer, .sources = {0, 1}}) == "sources");
  CHECK(argument(CodecWish{.codec = CodecName::kKvSharer, .sources = {0, 2, 2, 3, 4, 5}}) == "sources[1]");
  CHECK(argument(CodecWish{.codec = CodecName::kKvSharer, .sources = {0, 1, 2, 0, 4, 5}}) == "sources[3]");
}

TEST_CASE("bits cannot be planned for what was not calibrated") {
  const Profile profile = make_codec_profile(*model_with_window(), {CodecName::kInteger}).value();
  CHECK(argument_of(plan_bits(profile, {{"4x", 0.0, 4.0}}).status()) == "profile");
}

TEST_CASE("profiles whose kinds contradict their content are refused") {
  const auto model = model_with_window();
  const auto changed = [&](const CodecWish& wish, const auto& change) {
    Profile profile = make_codec_profile(*model, wish).value();
    change(profile);
    return argument_of(finish_profile(profile));
  };
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].kind = static_cast<GroupKind>(4); }) ==
        "groups[0].kind");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].kind = GroupKind::kLearned; }) ==
        "groups[0].keys.basis");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].keys.basis.resize(1); }) == "groups[0].keys.basis");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].keys.latent_width = 127; }) ==
        "groups[0].keys.latent_width");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.plans[0].groups[0].keys[0].width = 100; }) ==
        "plans[0].groups[0].keys");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].correction.rank = 2; }) ==
        "groups[0].correction.rank");
  CHECK(changed({CodecName::kInteger}, [](Profile& p) { p.groups[0].merge.heads = 2; }) == "groups[0].merge");
  CHECK(changed({CodecName::kMiniCache}, [](Profile& p) { p.groups[0].merge.heads = 3; }) == "groups[0].merge");
  CHECK(changed({CodecName::kMiniCache}, [](Profile& p) { p.groups[0].merge.retained = 65; }) ==
        "groups[0].merge.retained");
  CHECK(changed({CodecName::kMiniCache}, [](Profile& p) { p.groups[0].merge.interpolation = 2.0f; }) ==
        "groups[0].merge.interpolation");
  CHECK(changed({CodecName::kMiniCache}, [](Profile& p) { p.plans[0].groups[0].keys[0] = {128, 4}; }) ==
        "plans[0].groups[0].keys[0].code");
  CHECK(changed({CodecName::kXkv}, [](Profile& p) { p.plans[0].groups[0].keys[0].bits = 8; }) ==
        "plans[0].groups[0].keys[0].bits");
  CodecWish shared{CodecName::kKvSharer};
  shared.sources = {0, 1, 0, 3, 4, 1};
  CHECK(changed(shared, [](Profile& p) { p.sources.pop_back(); }) == "sources");
  CHECK(changed(shared, [](Profile& p) { p.sources[1] = 2; }) == "sources[1]");
  CHECK(changed(shared, [](Profile& p) { p.sources[5] = 2; }) == "sources[5]");
}

}  // namespace
}  // namespace foldkv::test
