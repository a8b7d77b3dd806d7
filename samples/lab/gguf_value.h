#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "samples/lab/byte_reader.h"

namespace foldkv_lab {

// Values of GGUF metadata. Texts are views into the file. An array keeps one vector of its kind, so that hostile
// counts cost a small multiple of the bytes that carry them.
struct GgufArray {
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<absl::string_view>, std::vector<GgufArray>>
      elements;
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, absl::string_view, GgufArray>;

// Reads a text: 64-bit length, then bytes.
[[nodiscard]] absl::StatusOr<absl::string_view> read_gguf_text(ByteReader& reader, absl::string_view what);

// Reads a value: 32-bit type code, then the value. `key` is for messages only.
[[nodiscard]] absl::StatusOr<GgufValue> read_gguf_value(ByteReader& reader, absl::string_view key);

}  // namespace foldkv_lab
