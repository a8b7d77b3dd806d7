#include "runtime/base/fingerprint.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

// The definition, apart from hashing: little-endian bytes one after the other.
class Bytes {
 public:
  template <typename Word>
  Bytes& word(Word value) {
    for (size_t index = 0; index < sizeof value; ++index) bytes_.push_back(static_cast<uint8_t>(value >> (8 * index)));
    return *this;
  }
  Bytes& text(const std::string& value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  [[nodiscard]] uint64_t hash() const { return fingerprint_of_bytes(bytes_.data(), bytes_.size()); }

 private:
  std::vector<uint8_t> bytes_;
};

TEST_CASE("the hash is XXH3 with 64 bits") {
  // The published value of no bytes with seed 0, and that of a text by another binding of xxHash.
  CHECK(fingerprint_of_bytes(nullptr, 0) == 0x2d06800538d394c2u);
  CHECK(Fingerprint().value() == 0x2d06800538d394c2u);
  const std::string text = "foldkv";
  CHECK(fingerprint_of_bytes(text.data(), text.size()) == 0x8610742601d08aebu);
}

TEST_CASE("numbers are hashed as little-endian bytes") {
  CHECK(Fingerprint().add(int64_t{-2}).value() == Bytes().word(uint64_t{0xfffffffffffffffe}).hash());
  CHECK(Fingerprint().add(uint64_t{0x0123456789abcdef}).value() == Bytes().word(uint64_t{0x0123456789abcdef}).hash());
  CHECK(Fingerprint().add(1.5).value() == Bytes().word(std::bit_cast<uint64_t>(1.5)).hash());
  CHECK(Fingerprint().add(int64_t{1}).add(2.0).value() ==
        Bytes().word(uint64_t{1}).word(std::bit_cast<uint64_t>(2.0)).hash());
}

TEST_CASE("texts and arrays begin with their length") {
  CHECK(Fingerprint().add(std::string("ab")).value() == Bytes().word(uint64_t{2}).text("ab").hash());
  CHECK(Fingerprint().add(std::string("a")).add(std::string("b")).value() !=
        Fingerprint().add(std::string("")).add(std::string("ab")).value());
  const std::array<float, 2> floats = {0.5f, -3.0f};
  CHECK(Fingerprint().add(std::span<const float>(floats)).value() ==
        Bytes().word(uint64_t{2}).word(std::bit_cast<uint32_t>(0.5f)).word(std::bit_cast<uint32_t>(-3.0f)).hash());
  CHECK(Fingerprint().add(std::span<const double>()).value() == Bytes().word(uint64_t{0}).hash());
}

TEST_CASE("arrays longer than the inner buffer are hashed whole") {
  for (size_t count : {255, 256, 257, 1000}) {
    CAPTURE(count);
    std::vector<double> doubles(count);
    Bytes bytes;
    bytes.word(uint64_t{count});
    for (size_t index = 0; index < count; ++index) {
      doubles[index] = static_cast<double>(index) * 0.25 + 1.0;
      bytes.word(std::bit_cast<uint64_t>(doubles[index]));
    }
    CHECK(Fingerprint().add(std::span<const double>(doubles)).value() == bytes.hash());
  }
}

TEST_CASE("zeros of either sign are equal, in scalars and arrays") {
  CHECK(Fingerprint().add(-0.0).value() == Fingerprint().add(0.0).value());
  const std::array<float, 2> negative = {1.0f, -0.0f};
  const std::array<float, 2> positive = {1.0f, 0.0f};
  CHECK(Fingerprint().add(std::span<const float>(negative)).value() ==
        Fingerprint().add(std::span<const float>(positive)).value());
  const std::array<float, 2> smallest = {1.0f, std::numeric_limits<float>::denorm_min()};
  CHECK(Fingerprint().add(std::span<const float>(smallest)).value() !=
        Fingerprint().add(std::span<const float>(positive)).value());
}

TEST_CASE("a mixed stream keeps its value for good") {
  const std::array<float, 3> floats = {1.0f, -2.5f, 0.0f};
  const std::array<double, 2> doubles = {1e-6, 10000.0};
  const uint64_t value = Fingerprint()
                             .add(int64_t{-7})
                             .add(uint64_t{7})
                             .add(0.125)
                             .add(std::string("a profile"))
                             .add(std::span<const float>(floats))
                             .add(std::span<const double>(doubles))
                             .value();
  CHECK(value == 0xd0f71cde7b9b4ef1u);
}

TEST_CASE("reading the value does not end the stream") {
  Fingerprint fingerprint;
  fingerprint.add(int64_t{1});
  const uint64_t first = fingerprint.value();
  CHECK(fingerprint.value() == first);
  CHECK(fingerprint.add(int64_t{2}).value() == Fingerprint().add(int64_t{1}).add(int64_t{2}).value());
}

}  // namespace
}  // namespace foldkv
