#include "samples/lab/gguf_value.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace foldkv_lab {
namespace {

enum GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kText = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Arrays of arrays exist in the format, but no writer nests deeper than this.
constexpr int kMaximumNesting = 4;

absl::StatusOr<bool> read_bool(ByteReader& reader, absl::string_view key) {
  LAB_ASSIGN_OR_RETURN(const uint8_t number, reader.read<uint8_t>(key));
  if (number > 1) return absl::DataLossError(absl::StrCat(key, ": a truth value is ", number, ", expected 0 or 1"));
  return number == 1;
}

// Smallest number of bytes that one element takes in the file; 0 for an unknown type.
uint64_t smallest_size(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool: return 1;
    case kUint16:
    case kInt16: return 2;
    case kUint32:
    case kInt32:
    case kFloat32: return 4;
    case kText:
    case kUint64:
    case kInt64:
    case kFloat64: return 8;
    case kArray: return 12;
    default: return 0;
  }
}

template <typename Target, typename ReadOne>
absl::StatusOr<GgufArray> read_elements(uint64_t count, const ReadOne& read_one) {
  std::vector<Target> elements;
  elements.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    LAB_ASSIGN_OR_RETURN(auto element, read_one());
    elements.push_back(static_cast<Target>(std::move(element)));
  }
  return GgufArray{std::move(elements)};
}

absl::StatusOr<GgufArray> read_array(ByteReader& reader, absl::string_view key, int depth) {
  LAB_ASSIGN_OR_RETURN(const uint32_t type, reader.read<uint32_t>(key));
  LAB_ASSIGN_OR_RETURN(const uint64_t count, reader.read<uint64_t>(key));
  const uint64_t size = smallest_size(type);
  if (size == 0) return absl::DataLossError(absl::StrCat(key, ": array of unknown type ", type));
  if (count > reader.remaining() / size) {
    return absl::DataLossError(absl::StrCat(key, ": an array of ", count, " elements does not fit the ",
                                            reader.remaining(), " bytes left in the file"));
  }
  switch (type) {
    case kUint8: return read_elements<uint64_t>(count, [&] { return reader.read<uint8_t>(key); });
    case kUint16: return read_elements<uint64_t>(count, [&] { return reader.read<uint16_t>(key); });
    case kUint32: return read_elements<uint64_t>(count, [&] { return reader.read<uint32_t>(key); });
    case kUint64: return read_elements<uint64_t>(count, [&] { return reader.read<uint64_t>(key); });
    case kInt8: return read_elements<int64_t>(count, [&] { return reader.read<int8_t>(key); });
    case kInt16: return read_elements<int64_t>(count, [&] { return reader.read<int16_t>(key); });
    case kInt32: return read_elements<int64_t>(count, [&] { return reader.read<int32_t>(key); });
    case kInt64: return read_elements<int64_t>(count, [&] { return reader.read<int64_t>(key); });
    case kFloat32: return read_elements<double>(count, [&] { return reader.read<float>(key); });
    case kFloat64: return read_elements<double>(count, [&] { return reader.read<double>(key); });
    case kBool: return read_elements<bool>(count, [&] { return read_bool(reader, key); });
    case kText: return read_elements<absl::string_view>(count, [&] { return read_gguf_text(reader, key); });
    default: break;
  }
  if (depth == kMaximumNesting) {
    return absl::DataLossError(absl::StrCat(key, ": arrays nest deeper than ", kMaximumNesting));
  }
  return read_elements<GgufArray>(count, [&] { return read_array(reader, key, depth + 1); });
}

template <typename Target, typename Number>
absl::StatusOr<GgufValue> read_number(ByteReader& reader, absl::string_view key) {
  LAB_ASSIGN_OR_RETURN(const Number number, reader.read<Number>(key));
  return GgufValue(static_cast<Target>(number));
}

}  // namespace

absl::StatusOr<absl::string_view> read_gguf_text(ByteReader& reader, absl::string_view what) {
  LAB_ASSIGN_OR_RETURN(const uint64_t length, reader.read<uint64_t>(what));
  return reader.read_text(length, what);
}

absl::StatusOr<GgufValue> read_gguf_value(ByteReader& reader, absl::string_view key) {
  LAB_ASSIGN_OR_RETURN(const uint32_t type, reader.read<uint32_t>(key));
  switch (type) {
    case kUint8: return read_number<uint64_t, uint8_t>(reader, key);
    case kUint16: return read_number<uint64_t, uint16_t>(reader, key);
    case kUint32: return read_number<uint64_t, uint32_t>(reader, key);
    case kUint64: return read_number<uint64_t, uint64_t>(reader, key);
    case kInt8: return read_number<int64_t, int8_t>(reader, key);
    case kInt16: return read_number<int64_t, int16_t>(reader, key);
    case kInt32: return read_number<int64_t, int32_t>(reader, key);
    case kInt64: return read_number<int64_t, int64_t>(reader, key);
    case kFloat32: return read_number<double, float>(reader, key);
    case kFloat64: return read_number<double, double>(reader, key);
    case kBool: {
      LAB_ASSIGN_OR_RETURN(const bool truth, read_bool(reader, key));
      return GgufValue(truth);
    }
    case kText: {
      LAB_ASSIGN_OR_RETURN(const absl::string_view text, read_gguf_text(reader, key));
      return GgufValue(text);
    }
    case kArray: {
      LAB_ASSIGN_OR_RETURN(GgufArray array, read_array(reader, key, 1));
      return GgufValue(std::move(array));
    }
    default: return absl::DataLossError(absl::StrCat(key, ": unknown type ", type));
  }
}

}  // namespace foldkv_lab
