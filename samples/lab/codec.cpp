#include "samples/lab/codec.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace foldkv_lab {

absl::Status check_codecs(const std::vector<Codec>& codecs) {
  if (codecs.empty()) return absl::InvalidArgumentError("there is no codec to evaluate");
  std::set<std::string> names;
  for (const Codec& codec : codecs) {
    if (!names.insert(codec.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two codecs are named \"", codec.name, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace foldkv_lab
