#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_host.h"

namespace foldkv_lab {

// A codec that needs no calibration, as the command line names it.
struct NamedCodec {
  const char* name;
  const char* description;
  int32_t codec;  // FOLDKV_CODEC_...
  int32_t bits;   // 0: the codec's default
};

[[nodiscard]] std::span<const NamedCodec> all_named_codecs();

// Its profile for the host's model. An error that lists the names there are.
[[nodiscard]] absl::StatusOr<foldkv::Profile> named_codec_profile(const FoldkvHost& host, const std::string& name);

}  // namespace foldkv_lab
