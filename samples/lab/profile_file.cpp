#include "samples/lab/profile_file.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/write_file.h"

namespace foldkv_lab {

absl::StatusOr<foldkv::Profile> load_profile(const std::string& path) {
  LAB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, absl::StrCat("loading ", path),
                              foldkv::Profile::load(file.bytes()));
  return profile;
}

absl::StatusOr<int64_t> save_profile(const foldkv::Profile& profile, const std::string& path) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<std::byte> bytes, "writing the profile", profile.save());
  LAB_RETURN_IF_ERROR(write_file(path, {bytes}));
  return static_cast<int64_t>(bytes.size());
}

}  // namespace foldkv_lab
