#include "samples/lab/dequantize.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/half.h"
#include "tests/support/random.h"

namespace foldkv_lab::test {
namespace {

using Bytes = std::vector<std::byte>;

// Writes blocks number by number: where each code goes is told here by index arithmetic over single bits, independent
// of how the reader walks through bytes.
class BlockWriter {
 public:
  explicit BlockWriter(size_t bytes) : bytes_(bytes, std::byte{0}) {}

  void put_half(size_t place, uint16_t half) { std::memcpy(bytes_.data() + place, &half, sizeof(half)); }
  // The lowest `count` bits of `code` from bit `first_bit` of byte `place` on.
  void put_bits(size_t place, int first_bit, int count, int code) {
    for (int i = 0; i < count; ++i) {
      if ((code >> i & 1) != 0) bytes_[place] |= std::byte{1} << (first_bit + i);
    }
  }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

std::vector<float> read(TensorType type, const Bytes& bytes, size_t count) {
  std::vector<float> numbers(count);
  const absl::Status status = dequantize(type, bytes, numbers);
  CHECK_MESSAGE(status.ok(), status.message());
  return numbers;
}

void check_equal(const std::vector<float>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK(static_cast<double>(got[i]) == doctest::Approx(expected[i]).epsilon(1e-6));
  }
}

constexpr uint16_t kHalf0_5 = 0x3800;
constexpr uint16_t kHalf2 = 0x4000;
constexpr uint16_t kHalfMinus1 = 0xbc00;

TEST_CASE("plain formats") {
  const std::vector<float> numbers = {1.5f, -2.0f};
  Bytes bytes(8);
  std::memcpy(bytes.data(), numbers.data(), 8);
  CHECK(read(TensorType::kF32, bytes, 2) == numbers);
  CHECK(read(TensorType::kF16, {std::byte{0x00}, std::byte{0x3e}, std::byte{0x00}, std::byte{0xc0}}, 2) == numbers);
  CHECK(read(TensorType::kBf16, {std::byte{0xc0}, std::byte{0x3f}, std::byte{0x00}, std::byte{0xc0}}, 2) == numbers);
}

TEST_CASE("blocks computed by hand") {
  // Q8_0: scale 0.5; codes 127, -128, 1 at the start.
  Bytes q8(34, std::byte{0});
  q8[1] = std::byte{0x38};
  q8[2] = std::byte{127};
  q8[3] = std::byte{0x80};
  q8[4] = std::byte{1};
  const std::vector<float> eight = read(TensorType::kQ8_0, q8, 32);
  CHECK(eight[0] == 63.5f);
  CHECK(eight[1] == -64.0f);
  CHECK(eight[2] == 0.5f);
  CHECK(eight[31] == 0.0f);
  // Q4_1: scale 2, minimum -1; byte 0 is 0xf3: element 0 has code 3, element 16 code 15.
  Bytes q41(20, std::byte{0});
  q41[1] = std::byte{0x40};
  q41[3] = std::byte{0xbc};
  q41[4] = std::byte{0xf3};
  const std::vector<float> four = read(TensorType::kQ4_1, q41, 32);
  CHECK(four[0] == 5.0f);
  CHECK(four[16] == 29.0f);
  CHECK(four[1] == -1.0f);
}

TEST_CASE("32-wide formats with random codes") {
  foldkv::test::Random random(1);
  BlockWriter q40(18), q41(20), q50(22);
  for (BlockWriter* block : {&q40, &q41, &q50}) block->put_half(0, kHalf0_5);
  q41.put_half(2, kHalfMinus1);
  std::vector<double> expected40, expected41, expected50;
  for (int i = 0; i < 32; ++i) {
    const int code = static_cast<int>(random.between(0, 31));
    const size_t byte = static_cast<size_t>(i % 16);
    const int shift = i < 16 ? 0 : 4;
    q40.put_bits(2 + byte, shift, 4, code);
    q41.put_bits(4 + byte, shift, 4, code);
    q50.put_bits(6 + byte, shift, 4, code);
    q50.put_bits(2 + static_cast<size_t>(i / 8), i % 8, 1, code >> 4);
    expected40.push_back(0.5 * (code % 16 - 8));
    expected41.push_back(0.5 * (code % 16) - 1);
    expected50.push_back(0.5 * (code - 16));
  }
  check_equal(read(TensorType::kQ4_0, q40.bytes(), 32), expected40);
  check_equal(read(TensorType::kQ4_1, q41.bytes(), 32), expected41);
  check_equal(read(TensorType::kQ5_0, q50.bytes(), 32), expected50);
}

TEST_CASE("Q4_K with random scales, minima and codes") {
  foldkv::test::Random random(2);
  BlockWriter block(144);
  block.put_half(0, kHalf0_5);
  block.put_half(2, kHalf2);
  std::vector<double> expected(256);
  for (int run = 0; run < 8; ++run) {
    const int scale = static_cast<int>(random.between(0, 63));
    const int minimum = static_cast<int>(random.between(0, 63));
    const size_t r = static_cast<size_t>(run);
    if (run < 4) {
      block.put_bits(4 + r, 0, 6, scale);
      block.put_bits(8 + r, 0, 6, minimum);
    } else {
      block.put_bits(8 + r, 0, 4, scale);
      block.put_bits(8 + r, 4, 4, minimum);
      block.put_bits(r, 6, 2, scale >> 4);        // bytes 4 to 7
      block.put_bits(4 + r, 6, 2, minimum >> 4);  // bytes 8 to 11
    }
    for (int i = 0; i < 32; ++i) {
      const int code = static_cast<int>(random.between(0, 15));
      block.put_bits(16 + static_cast<size_t>(run / 2 * 32 + i), run % 2 * 4, 4, code);
      expected[static_cast<size_t>(run * 32 + i)] = 0.5 * scale * code - 2.0 * minimum;
    }
  }
  check_equal(read(TensorType::kQ4K, block.bytes(), 256), expected);
}

TEST_CASE("Q6_K with random scales and codes") {
  foldkv::test::Random random(3);
  BlockWriter block(210);
  block.put_half(208, kHalf0_5);
  int scales[16];
  for (size_t i = 0; i < 16; ++i) {
    scales[i] = static_cast<int>(random.between(-128, 127));
    block.put_bits(192 + i, 0, 8, scales[i]);
  }
  std::vector<double> expected;
  for (int i = 0; i < 256; ++i) {
    const int code = static_cast<int>(random.between(0, 63));
    const int in_half = i % 128;
    const int low_byte = i / 128 * 64 + in_half % 64;
    block.put_bits(static_cast<size_t>(low_byte), in_half < 64 ? 0 : 4, 4, code);
    block.put_bits(static_cast<size_t>(128 + i / 128 * 32 + in_half % 32), in_half / 32 * 2, 2, code >> 4);
    expected.push_back(0.5 * scales[i / 16] * (code - 32));
  }
  check_equal(read(TensorType::kQ6K, block.bytes(), 256), expected);
}

TEST_CASE("several blocks, and sizes that do not fit") {
  Bytes two(68, std::byte{0});
  two[35] = std::byte{0x38};  // the second block's scale
  two[36] = std::byte{4};
  CHECK(read(TensorType::kQ8_0, two, 64)[32] == 2.0f);
  std::vector<float> target(64);
  CHECK_FALSE(dequantize(TensorType::kQ8_0, std::span(two).first(67), target).ok());
  CHECK_FALSE(dequantize(TensorType::kQ8_0, std::span(two).first(34), target).ok());
  CHECK_FALSE(dequantize(TensorType::kQ8_0, two, std::span(target).first(63)).ok());
  CHECK_FALSE(dequantize(static_cast<TensorType>(99), two, target).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
