#include "samples/lab/profile_file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

absl::StatusOr<foldkv::Profile> load_profile(const std::string& path) {
  LAB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, absl::StrCat("loading ", path),
                              foldkv::Profile::load(file.bytes()));
  return profile;
}

absl::StatusOr<int64_t> save_profile(const foldkv::Profile& profile, const std::string& path) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<std::byte> bytes, "writing the profile", profile.save());
  const std::string temporary = path + ".part";
  std::error_code code;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      std::filesystem::remove(temporary, code);
      return absl::InternalError(absl::StrCat("cannot write ", temporary));
    }
  }
  std::filesystem::rename(temporary, path, code);
  if (code) return absl::InternalError(absl::StrCat("cannot rename ", temporary, ": ", code.message()));
  return static_cast<int64_t>(bytes.size());
}

}  // namespace foldkv_lab
