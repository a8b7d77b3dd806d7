#include "samples/lab/named_codec.h"

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr NamedCodec kNamedCodecs[] = {
    {"int8", "8 bits, a scale for each token and head", FOLDKV_CODEC_INTEGER, 8},
    {"int4", "4 bits, likewise", FOLDKV_CODEC_INTEGER, 4},
    {"kivi4", "KIVI, 4 bits: keys per channel, values per token", FOLDKV_CODEC_KIVI, 4},
    {"kivi2", "KIVI, 2 bits", FOLDKV_CODEC_KIVI, 2},
    {"xkv", "xKV: singular vectors of 4 layers, coordinates in 16 bits", FOLDKV_CODEC_XKV, 0},
    {"xkv4", "xKV, coordinates in 4 bits", FOLDKV_CODEC_XKV, 4},
    {"minicache", "MiniCache: neighbouring layers share directions", FOLDKV_CODEC_MINICACHE, 0},
};

}  // namespace

std::span<const NamedCodec> all_named_codecs() { return kNamedCodecs; }

absl::StatusOr<foldkv::Profile> named_codec_profile(const FoldkvHost& host, const std::string& name) {
  std::string known;
  for (const NamedCodec& named : kNamedCodecs) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", named.name);
    if (name != named.name) continue;
    foldkv_codec_options options = foldkv::init<foldkv_codec_options>();
    options.codec = named.codec;
    options.bits = named.bits;
    LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, absl::StrCat("making the codec ", name),
                                foldkv::Profile::from_codec(host.foldkv_model(), options));
    return profile;
  }
  return absl::InvalidArgumentError(absl::StrCat("--codec: got \"", name, "\", expected one of: ", known));
}

}  // namespace foldkv_lab
