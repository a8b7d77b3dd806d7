#include "tests/runtime/cache/snapshot/snapshot_scene.h"

namespace foldkv::test {
namespace {

std::shared_ptr<const Profile> codec(const ToyHost& host, const CodecWish& wish) {
  auto profile = make_codec_profile(*host.model(), wish);
  REQUIRE_MESSAGE(profile.ok(), std::string(profile.status().message()));
  return std::make_shared<const Profile>(*std::move(profile));
}

}  // namespace

std::vector<Holding> all_holdings(const ToyHost& host) {
  const auto runtime = open_runtime({});
  std::vector<Holding> holdings = {{"exact", nullptr, {}}};
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kBF16}) {
    Holding holding{absl::StrCat("exact ", name_of(format)), nullptr, {}};
    holding.policy.format = format;
    holdings.push_back(holding);
  }
  ProfileChoice corrected{2, 4, 0, 16, 3};
  corrected.exact_layers = 2;
  holdings.push_back({"learned", calibrate(runtime, host, {2, 4, 0, 16, 2}), {}});
  holdings.push_back({"learned, two layers exact", calibrate(runtime, host, corrected), {}});
  holdings.push_back({"learned, the profile's mean", calibrate(runtime, host, {4, 2, 0, 16, 0}), {}});
  holdings.back().policy.mean = MeanSource::kProfile;
  CodecWish low_rank{CodecName::kXkv};
  low_rank.layers_per_group = 2;
  low_rank.key_rank = 12;
  low_rank.value_rank = 16;
  CodecWish coarse = low_rank;
  coarse.bits = 4;
  CodecWish shared{CodecName::kKvSharer};
  shared.sources = {0, 0, 2, 2};
  holdings.push_back({"int8", codec(host, {CodecName::kInteger}), {}});
  holdings.push_back({"kivi2", codec(host, {CodecName::kKivi, 2}), {}});
  holdings.push_back({"xkv", codec(host, low_rank), {}});
  holdings.push_back({"xkv4", codec(host, coarse), {}});
  holdings.push_back({"minicache", codec(host, {CodecName::kMiniCache}), {}});
  holdings.push_back({"kvsharer", codec(host, shared), {}});
  for (const std::string& name : evicting_policies()) {
    holdings.push_back({name, nullptr, evicting(small_policy(name, 60, host.shape().layers), NumberFormat::kF16)});
  }
  for (const std::string name : {"snapkv", "h2o", "bellowskv-evict"}) {
    EvictionPolicy policy = small_policy(name, 90, host.shape().layers);
    Holding holding{name + " of latents", calibrate(runtime, host, {2, 4, 0, 16, 2}), evicting(policy)};
    holding.policy.recent_tokens = 32;
    holdings.push_back(holding);
  }
  return holdings;
}

}  // namespace foldkv::test
