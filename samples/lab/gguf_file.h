#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "samples/lab/gguf_value.h"
#include "samples/lab/tensor_type.h"

namespace foldkv_lab {

struct GgufTensor {
  absl::string_view name;
  TensorType type;
  std::vector<uint64_t> shape;  // the fastest dimension first, as in the file
  uint64_t element_count = 0;
  std::span<const std::byte> bytes;  // inside the file, of exactly the size that type and shape ask for
};

// A parsed GGUF file, version 2 or 3. Its input counts as hostile: every size is checked before it is used, and
// whatever is wrong becomes an error that says what was found where. All views point into the parsed bytes.
class GgufFile {
 public:
  [[nodiscard]] static absl::StatusOr<GgufFile> parse(std::span<const std::byte> bytes);

  [[nodiscard]] const GgufTensor* find_tensor(absl::string_view name) const;
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return tensors_; }

  // Metadata by key. A missing key or another kind of value is an error; the _or forms have a value for a missing
  // key.
  [[nodiscard]] bool has(absl::string_view key) const { return metadata_.contains(key); }
  [[nodiscard]] absl::StatusOr<uint64_t> unsigned_number(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<uint64_t> unsigned_number_or(absl::string_view key, uint64_t missing) const;
  [[nodiscard]] absl::StatusOr<double> real_number(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<double> real_number_or(absl::string_view key, double missing) const;
  [[nodiscard]] absl::StatusOr<bool> truth_or(absl::string_view key, bool missing) const;
  [[nodiscard]] absl::StatusOr<absl::string_view> text(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<absl::string_view> text_or(absl::string_view key, absl::string_view missing) const;
  [[nodiscard]] absl::StatusOr<std::span<const absl::string_view>> texts(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<std::span<const double>> real_numbers(absl::string_view key) const;
  [[nodiscard]] absl::StatusOr<std::span<const int64_t>> signed_numbers(absl::string_view key) const;

 private:
  GgufFile() = default;

  [[nodiscard]] absl::StatusOr<const GgufValue*> find_value(absl::string_view key) const;
  template <typename Element>
  [[nodiscard]] absl::StatusOr<std::span<const Element>> find_array(absl::string_view key,
                                                                    absl::string_view kind) const;
  [[nodiscard]] absl::Status read_metadata(ByteReader& reader, uint64_t count);
  [[nodiscard]] absl::Status read_tensor_entry(ByteReader& reader);
  [[nodiscard]] absl::Status place_tensors(std::span<const std::byte> bytes, uint64_t header_end);
  [[nodiscard]] absl::Status check_overlaps() const;

  absl::flat_hash_map<absl::string_view, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint64_t> offsets_;  // of each tensor, from the start of the data section
  absl::flat_hash_map<absl::string_view, size_t> tensor_index_;
};

}  // namespace foldkv_lab
