#include "samples/lab/byte_reader.h"

#include "absl/strings/str_cat.h"

namespace foldkv_lab {

absl::StatusOr<std::span<const std::byte>> ByteReader::read_bytes(uint64_t count, absl::string_view what) {
  if (count > remaining()) {
    return absl::DataLossError(
        absl::StrCat(what, " at byte ", position_, " needs ", count, " bytes, the file has ", remaining(), " left"));
  }
  const std::span<const std::byte> result = bytes_.subspan(position_, count);
  position_ += count;
  return result;
}

absl::StatusOr<absl::string_view> ByteReader::read_text(uint64_t length, absl::string_view what) {
  LAB_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, read_bytes(length, what));
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace foldkv_lab
