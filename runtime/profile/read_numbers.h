#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "flatbuffers/flatbuffers.h"

namespace foldkv {

// Bytewise: the verifier aligns the length of a vector, not its doubles.
template <typename Number>
[[nodiscard]] std::vector<Number> read_numbers(const flatbuffers::Vector<Number>& source) {
  std::vector<Number> numbers(source.size());
  if (!numbers.empty()) std::memcpy(numbers.data(), source.Data(), numbers.size() * sizeof(Number));
  for (Number& number : numbers) number = flatbuffers::EndianScalar(number);
  return numbers;
}

[[nodiscard]] inline std::string read_text(const flatbuffers::String* source) {
  return source == nullptr ? std::string() : source->str();
}

}  // namespace foldkv
