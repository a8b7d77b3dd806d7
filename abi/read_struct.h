#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "abi/guard.h"

// Structs of callers that were built against an older or newer header: missing fields read as zero, fields this
// library does not know must be zero.
namespace foldkv::abi {

// No public struct comes near this; a larger size is a caller that forgot to set it.
inline constexpr uint32_t kLargestStruct = 65536;

template <typename Struct>
[[nodiscard]] StatusOr<Struct> read_struct_of_size(const void* source, uint32_t size, absl::string_view argument) {
  if (size < sizeof(uint32_t) || size > kLargestStruct) {
    return argument_error(absl::StrCat(argument, ".struct_size"),
                          absl::StrCat("is ", size, ", expected sizeof, here ", sizeof(Struct)));
  }
  const auto* bytes = static_cast<const unsigned char*>(source);
  if (size > sizeof(Struct) && std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char b) { return b != 0; })) {
    return with_argument(version_error(absl::StrCat("has ", size, " bytes with fields set beyond the ", sizeof(Struct),
                                                    " that this library knows")),
                         argument);
  }
  Struct result{};
  std::memcpy(static_cast<void*>(&result), bytes, std::min<size_t>(size, sizeof(Struct)));
  return result;
}

// The options behind a pointer; null reads as all defaults when that is allowed.
template <typename Struct>
[[nodiscard]] StatusOr<Struct> read_struct(const Struct* source, absl::string_view argument) {
  FOLDKV_RETURN_IF_ERROR(require(source, argument));
  return read_struct_of_size<Struct>(source, source->struct_size, argument);
}
template <typename Struct>
[[nodiscard]] StatusOr<Struct> read_optional_struct(const Struct* source, absl::string_view argument) {
  if (source == nullptr) return Struct{};
  return read_struct(source, argument);
}

// An array of structs; the size of the first is the distance between them.
template <typename Struct>
[[nodiscard]] StatusOr<std::vector<Struct>> read_structs(const Struct* source, int64_t count,
                                                         absl::string_view argument) {
  FOLDKV_RETURN_IF_ERROR(require(source, argument));
  std::vector<Struct> result;
  const uint32_t size = source->struct_size;
  for (int64_t index = 0; index < count; ++index) {
    const auto* place = reinterpret_cast<const unsigned char*>(source) + static_cast<size_t>(index) * size;
    FOLDKV_ASSIGN_OR_RETURN(Struct item,
                            read_struct_of_size<Struct>(place, size, absl::StrCat(argument, "[", index, "]")));
    result.push_back(item);
  }
  return result;
}

// Writes as much of value as the caller's struct holds and keeps its struct_size.
template <typename Struct>
[[nodiscard]] Status check_output_struct(const Struct* target, absl::string_view argument) {
  FOLDKV_RETURN_IF_ERROR(require(target, argument));
  if (target->struct_size >= sizeof(uint32_t) && target->struct_size <= kLargestStruct) return absl::OkStatus();
  return argument_error(absl::StrCat(argument, ".struct_size"),
                        absl::StrCat("is ", target->struct_size, ", expected sizeof, here ", sizeof(Struct)));
}
template <typename Struct>
void write_struct(Struct value, Struct* target) {
  value.struct_size = target->struct_size;
  std::memcpy(static_cast<void*>(target), &value, std::min<size_t>(target->struct_size, sizeof(Struct)));
}

template <size_t kCapacity>
void write_text(char (&target)[kCapacity], absl::string_view text) {
  const size_t length = std::min(text.size(), kCapacity - 1);
  std::memcpy(target, text.data(), length);
  target[length] = 0;
}

}  // namespace foldkv::abi
