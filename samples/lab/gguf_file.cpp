#include "samples/lab/gguf_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/checked_arithmetic.h"

namespace foldkv_lab {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaximumAlignment = 1 << 16;
constexpr uint32_t kMaximumRank = 4;
constexpr uint64_t kSmallestMetadataEntry = 8 + 4 + 1;        // key length, type, value
constexpr uint64_t kSmallestTensorEntry = 8 + 4 + 8 + 4 + 8;  // name length, rank, one size, type, offset

absl::Status check_count(uint64_t count, uint64_t smallest, uint64_t remaining, absl::string_view what) {
  if (count <= remaining / smallest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(count, " ", what, " do not fit the ", remaining, " bytes left in the file"));
}

absl::StatusOr<uint64_t> tensor_bytes(const GgufTensor& tensor, const TensorTypeInfo& info) {
  if (tensor.shape[0] % info.block_elements != 0) {
    return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": rows of ", tensor.shape[0], " numbers are not",
                                            " whole blocks of ", info.block_elements, " (", info.name, ")"));
  }
  return checked_product({tensor.element_count / info.block_elements, info.block_bytes}, tensor.name);
}

absl::Status wrong_kind(absl::string_view key, absl::string_view expected) {
  return absl::DataLossError(absl::StrCat(key, ": the value is of another kind, expected ", expected));
}

}  // namespace

absl::StatusOr<GgufFile> GgufFile::parse(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  LAB_ASSIGN_OR_RETURN(const uint32_t magic, reader.read<uint32_t>("GGUF magic"));
  if (magic != kMagic) return absl::DataLossError("the file does not begin with \"GGUF\"");
  LAB_ASSIGN_OR_RETURN(const uint32_t version, reader.read<uint32_t>("GGUF version"));
  if (version != 2 && version != 3) {
    return absl::UnimplementedError(absl::StrCat("GGUF version ", version, ", expected 2 or 3, little-endian"));
  }
  LAB_ASSIGN_OR_RETURN(const uint64_t tensor_count, reader.read<uint64_t>("tensor count"));
  LAB_ASSIGN_OR_RETURN(const uint64_t metadata_count, reader.read<uint64_t>("metadata count"));
  LAB_RETURN_IF_ERROR(check_count(metadata_count, kSmallestMetadataEntry, reader.remaining(), "metadata entries"));
  GgufFile file;
  LAB_RETURN_IF_ERROR(file.read_metadata(reader, metadata_count));
  LAB_RETURN_IF_ERROR(check_count(tensor_count, kSmallestTensorEntry, reader.remaining(), "tensors"));
  for (uint64_t i = 0; i < tensor_count; ++i) LAB_RETURN_IF_ERROR(file.read_tensor_entry(reader));
  LAB_RETURN_IF_ERROR(file.place_tensors(bytes, reader.position()));
  LAB_RETURN_IF_ERROR(file.check_overlaps());
  return file;
}

absl::Status GgufFile::read_metadata(ByteReader& reader, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    LAB_ASSIGN_OR_RETURN(const absl::string_view key, read_gguf_text(reader, absl::StrCat("metadata key ", i)));
    LAB_ASSIGN_OR_RETURN(GgufValue value, read_gguf_value(reader, key));
    if (!metadata_.emplace(key, std::move(value)).second) {
      return absl::DataLossError(absl::StrCat("metadata key ", key, " occurs twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufFile::read_tensor_entry(ByteReader& reader) {
  GgufTensor tensor;
  LAB_ASSIGN_OR_RETURN(tensor.name, read_gguf_text(reader, absl::StrCat("name of tensor ", tensors_.size())));
  LAB_ASSIGN_OR_RETURN(const uint32_t rank, reader.read<uint32_t>(tensor.name));
  if (rank < 1 || rank > kMaximumRank) {
    return absl::DataLossError(
        absl::StrCat("tensor ", tensor.name, " has ", rank, " dimensions, expected 1 to ", kMaximumRank));
  }
  tensor.element_count = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    LAB_ASSIGN_OR_RETURN(const uint64_t size, reader.read<uint64_t>(tensor.name));
    if (size == 0) return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": dimension ", i, " is zero"));
    LAB_ASSIGN_OR_RETURN(tensor.element_count, checked_product({tensor.element_count, size}, tensor.name));
    tensor.shape.push_back(size);
  }
  LAB_ASSIGN_OR_RETURN(const uint32_t type_code, reader.read<uint32_t>(tensor.name));
  const TensorTypeInfo* info = find_tensor_type(type_code);
  if (info == nullptr) {
    return absl::UnimplementedError(absl::StrCat("tensor ", tensor.name, " has type ", type_code,
                                                 ", expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q8_0, Q4_K or Q6_K"));
  }
  tensor.type = info->type;
  LAB_ASSIGN_OR_RETURN(const uint64_t offset, reader.read<uint64_t>(tensor.name));
  if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
    return absl::DataLossError(absl::StrCat("tensor ", tensor.name, " occurs twice"));
  }
  offsets_.push_back(offset);
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status GgufFile::place_tensors(std::span<const std::byte> bytes, uint64_t header_end) {
  LAB_ASSIGN_OR_RETURN(const uint64_t alignment, unsigned_number_or("general.alignment", kDefaultAlignment));
  if (alignment == 0 || alignment % 8 != 0 || alignment > kMaximumAlignment) {
    return absl::DataLossError(
        absl::StrCat("general.alignment is ", alignment, ", expected a multiple of 8 up to ", kMaximumAlignment));
  }
  // header_end is at most the file's size, so that rounding it up cannot overflow.
  const uint64_t data_start = (header_end + alignment - 1) / alignment * alignment;
  const uint64_t data_size = bytes.size() - std::min<uint64_t>(data_start, bytes.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    GgufTensor& tensor = tensors_[i];
    LAB_ASSIGN_OR_RETURN(const uint64_t size, tensor_bytes(tensor, tensor_type_info(tensor.type)));
    if (offsets_[i] % alignment != 0) {
      return absl::DataLossError(
          absl::StrCat("tensor ", tensor.name, ": offset ", offsets_[i], " is not a multiple of ", alignment));
    }
    if (offsets_[i] > data_size || size > data_size - offsets_[i]) {
      return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": ", size, " bytes at offset ", offsets_[i],
                                              " end beyond the ", data_size, " bytes of tensor data"));
    }
    tensor.bytes = bytes.subspan(data_start + offsets_[i], size);
  }
  return absl::OkStatus();
}

// Tensors that share bytes would let a small file ask for much memory.
absl::Status GgufFile::check_overlaps() const {
  std::vector<size_t> order(tensors_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return offsets_[a] < offsets_[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = tensors_[order[i - 1]];
    if (offsets_[order[i - 1]] + before.bytes.size() > offsets_[order[i]]) {
      return absl::DataLossError(absl::StrCat("tensors ", before.name, " and ", tensors_[order[i]].name, " overlap"));
    }
  }
  return absl::OkStatus();
}

const GgufTensor* GgufFile::find_tensor(absl::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

absl::StatusOr<const GgufValue*> GgufFile::find_value(absl::string_view key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return absl::NotFoundError(absl::StrCat("metadata key ", key, " is missing"));
  return &found->second;
}

absl::StatusOr<uint64_t> GgufFile::unsigned_number(absl::string_view key) const {
  LAB_ASSIGN_OR_RETURN(const GgufValue* value, find_value(key));
  if (const uint64_t* number = std::get_if<uint64_t>(value)) return *number;
  const int64_t* number = std::get_if<int64_t>(value);
  if (number != nullptr && *number >= 0) return static_cast<uint64_t>(*number);
  return wrong_kind(key, "a whole number of at least 0");
}

absl::StatusOr<uint64_t> GgufFile::unsigned_number_or(absl::string_view key, uint64_t missing) const {
  if (!has(key)) return missing;
  return unsigned_number(key);
}

absl::StatusOr<double> GgufFile::real_number(absl::string_view key) const {
  LAB_ASSIGN_OR_RETURN(const GgufValue* value, find_value(key));
  if (const double* number = std::get_if<double>(value)) return *number;
  return wrong_kind(key, "a floating-point number");
}

absl::StatusOr<double> GgufFile::real_number_or(absl::string_view key, double missing) const {
  if (!has(key)) return missing;
  return real_number(key);
}

absl::StatusOr<bool> GgufFile::truth_or(absl::string_view key, bool missing) const {
  if (!has(key)) return missing;
  LAB_ASSIGN_OR_RETURN(const GgufValue* value, find_value(key));
  if (const bool* truth = std::get_if<bool>(value)) return *truth;
  return wrong_kind(key, "a truth value");
}

absl::StatusOr<absl::string_view> GgufFile::text(absl::string_view key) const {
  LAB_ASSIGN_OR_RETURN(const GgufValue* value, find_value(key));
  if (const absl::string_view* text = std::get_if<absl::string_view>(value)) return *text;
  return wrong_kind(key, "a text");
}

absl::StatusOr<absl::string_view> GgufFile::text_or(absl::string_view key, absl::string_view missing) const {
  if (!has(key)) return missing;
  return text(key);
}

template <typename Element>
absl::StatusOr<std::span<const Element>> GgufFile::find_array(absl::string_view key, absl::string_view kind) const {
  LAB_ASSIGN_OR_RETURN(const GgufValue* value, find_value(key));
  const GgufArray* array = std::get_if<GgufArray>(value);
  if (array == nullptr) return wrong_kind(key, kind);
  const std::vector<Element>* elements = std::get_if<std::vector<Element>>(&array->elements);
  if (elements == nullptr) return wrong_kind(key, kind);
  return std::span<const Element>(*elements);
}

absl::StatusOr<std::span<const absl::string_view>> GgufFile::texts(absl::string_view key) const {
  return find_array<absl::string_view>(key, "an array of texts");
}

absl::StatusOr<std::span<const double>> GgufFile::real_numbers(absl::string_view key) const {
  return find_array<double>(key, "an array of floating-point numbers");
}

absl::StatusOr<std::span<const int64_t>> GgufFile::signed_numbers(absl::string_view key) const {
  return find_array<int64_t>(key, "an array of signed numbers");
}

}  // namespace foldkv_lab
