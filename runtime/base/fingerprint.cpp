#include "runtime/base/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace foldkv {
namespace {

// Numbers are hashed as little-endian bytes, so that the value does not depend on the machine.
template <typename Word>
void store_little_endian(Word word, unsigned char* bytes) {
  for (size_t index = 0; index < sizeof(Word); ++index) {
    bytes[index] = static_cast<unsigned char>(word >> (8 * index));
  }
}

// Equal numbers have equal hashes: -0.0 counts as 0.0.
uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value == 0.0 ? 0.0 : value); }
uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value == 0.0f ? 0.0f : value); }

XXH3_state_t* state_of(void* state) { return static_cast<XXH3_state_t*>(state); }

void update(void* state, const void* bytes, size_t size) {
  if (size > 0) XXH3_64bits_update(state_of(state), bytes, size);
}

template <typename Number>
void update_numbers(void* state, std::span<const Number> numbers) {
  constexpr size_t kChunk = 256;
  std::array<unsigned char, kChunk * sizeof(Number)> bytes;
  for (size_t first = 0; first < numbers.size(); first += kChunk) {
    const size_t count = std::min(kChunk, numbers.size() - first);
    for (size_t index = 0; index < count; ++index) {
      store_little_endian(bits_of(numbers[first + index]), bytes.data() + index * sizeof(Number));
    }
    update(state, bytes.data(), count * sizeof(Number));
  }
}

}  // namespace

Fingerprint::Fingerprint() : state_(new XXH3_state_t) { XXH3_64bits_reset(state_of(state_)); }
Fingerprint::~Fingerprint() { delete state_of(state_); }

Fingerprint& Fingerprint::add(uint64_t value) {
  std::array<unsigned char, sizeof value> bytes;
  store_little_endian(value, bytes.data());
  update(state_, bytes.data(), bytes.size());
  return *this;
}

Fingerprint& Fingerprint::add(int64_t value) { return add(static_cast<uint64_t>(value)); }
Fingerprint& Fingerprint::add(double value) { return add(bits_of(value)); }

// Lengths come first, so that neighbours cannot trade elements without being noticed.
Fingerprint& Fingerprint::add(const std::string& text) {
  add(uint64_t{text.size()});
  update(state_, text.data(), text.size());
  return *this;
}

Fingerprint& Fingerprint::add(std::span<const float> values) {
  add(uint64_t{values.size()});
  update_numbers(state_, values);
  return *this;
}

Fingerprint& Fingerprint::add_bytes(const void* bytes, size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes, size);
  return *this;
}

Fingerprint& Fingerprint::add(std::span<const double> values) {
  add(uint64_t{values.size()});
  update_numbers(state_, values);
  return *this;
}

uint64_t Fingerprint::value() const { return XXH3_64bits_digest(state_of(state_)); }

uint64_t fingerprint_of_bytes(const void* bytes, size_t size) { return XXH3_64bits(bytes, size); }

}  // namespace foldkv
