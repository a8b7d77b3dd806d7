#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {

// Walks through bytes that nobody has verified. Numbers are little-endian, as on every machine the lab runs on.
// A read beyond the end is an error that names what was to be read and where; the position does not move then.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  [[nodiscard]] absl::StatusOr<Number> read(absl::string_view what) {
    static_assert(std::is_arithmetic_v<Number>);
    LAB_ASSIGN_OR_RETURN(const std::span<const std::byte> source, read_bytes(sizeof(Number), what));
    Number number;
    std::memcpy(&number, source.data(), sizeof(Number));
    return number;
  }

  [[nodiscard]] absl::StatusOr<std::span<const std::byte>> read_bytes(uint64_t count, absl::string_view what);
  [[nodiscard]] absl::StatusOr<absl::string_view> read_text(uint64_t length, absl::string_view what);

  [[nodiscard]] uint64_t position() const { return position_; }
  [[nodiscard]] uint64_t remaining() const { return bytes_.size() - position_; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace foldkv_lab
