#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_attention.h"

namespace foldkv_lab {

// One way to keep a cache small, as evaluations compare it with others.
struct Codec {
  std::string name;
  const foldkv::Profile* profile = nullptr;  // nullptr: everything stays exact. Must outlive the codec's use.
  FoldkvAttention::Options options;
};

// An error when there is no codec, or when two have one name.
[[nodiscard]] absl::Status check_codecs(const std::vector<Codec>& codecs);

}  // namespace foldkv_lab
