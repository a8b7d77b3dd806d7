#include "samples/lab/dequantize.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "samples/lab/half.h"

namespace foldkv_lab {
namespace {

uint8_t byte_at(const std::byte* bytes, int index) { return static_cast<uint8_t>(bytes[index]); }

uint16_t half_bits_at(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

float half_at(const std::byte* bytes) { return half_to_float(half_bits_at(bytes)); }

void decode_f32(const std::byte* block, float* target) { std::memcpy(target, block, sizeof(float)); }
void decode_f16(const std::byte* block, float* target) { *target = half_at(block); }
void decode_bf16(const std::byte* block, float* target) { *target = bfloat16_to_float(half_bits_at(block)); }

void decode_q8_0(const std::byte* block, float* target) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) target[i] = scale * static_cast<float>(static_cast<int8_t>(byte_at(block, 2 + i)));
}

// In the 32-wide nibble formats byte i holds element i in its low and element i + 16 in its high half.
void decode_q4_0(const std::byte* block, float* target) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    const int packed = byte_at(block, 2 + i);
    target[i] = scale * static_cast<float>((packed & 15) - 8);
    target[i + 16] = scale * static_cast<float>((packed >> 4) - 8);
  }
}

void decode_q4_1(const std::byte* block, float* target) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int packed = byte_at(block, 4 + i);
    target[i] = scale * static_cast<float>(packed & 15) + minimum;
    target[i + 16] = scale * static_cast<float>(packed >> 4) + minimum;
  }
}

void decode_q5_0(const std::byte* block, float* target) {
  const float scale = half_at(block);
  uint32_t high_bits;
  std::memcpy(&high_bits, block + 2, sizeof(high_bits));
  for (int i = 0; i < 16; ++i) {
    const int packed = byte_at(block, 6 + i);
    const int low_fifth = static_cast<int>((high_bits >> i) & 1u) << 4;
    const int high_fifth = static_cast<int>((high_bits >> (i + 16)) & 1u) << 4;
    target[i] = scale * static_cast<float>(((packed & 15) | low_fifth) - 16);
    target[i + 16] = scale * static_cast<float>(((packed >> 4) | high_fifth) - 16);
  }
}

// Q4_K: 8 runs of 32 numbers, each with a 6-bit scale and a 6-bit minimum. Bytes 0-3 and 4-7 of the packed dozen
// hold scales and minima of runs 0-3 in their low 6 bits; bytes 8-11 hold the low nibbles of runs 4-7, whose top
// two bits sit in the top of bytes 0-7.
void q4_k_scale_and_minimum(const std::byte* packed, int run, int* scale, int* minimum) {
  if (run < 4) {
    *scale = byte_at(packed, run) & 63;
    *minimum = byte_at(packed, run + 4) & 63;
    return;
  }
  *scale = (byte_at(packed, run + 4) & 15) | ((byte_at(packed, run - 4) >> 6) << 4);
  *minimum = (byte_at(packed, run + 4) >> 4) | ((byte_at(packed, run) >> 6) << 4);
}

void decode_q4_k(const std::byte* block, float* target) {
  const float scale_unit = half_at(block);
  const float minimum_unit = half_at(block + 2);
  const std::byte* packed_scales = block + 4;
  const std::byte* nibbles = block + 16;
  for (int run = 0; run < 8; ++run) {
    int scale = 0;
    int minimum = 0;
    q4_k_scale_and_minimum(packed_scales, run, &scale, &minimum);
    const float step = scale_unit * static_cast<float>(scale);
    const float offset = minimum_unit * static_cast<float>(minimum);
    const int shift = (run % 2) * 4;  // runs 2j and 2j + 1 share 32 bytes
    for (int i = 0; i < 32; ++i) {
      const int code = (byte_at(nibbles, (run / 2) * 32 + i) >> shift) & 15;
      target[run * 32 + i] = step * static_cast<float>(code) - offset;
    }
  }
}

// Q6_K: two halves of 128 numbers; in each, quarter j (32 numbers) takes its low nibbles from low[32 * (j % 2) + i],
// the upper half of those bytes for j >= 2, and two more bits from high[i] >> 2j. 16 numbers share a signed scale.
void decode_q6_k(const std::byte* block, float* target) {
  const std::byte* low = block;
  const std::byte* high = block + 128;
  const std::byte* scales = block + 192;
  const float unit = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const int low_byte = byte_at(low, half * 64 + (quarter % 2) * 32 + i);
        const int nibble = quarter < 2 ? low_byte & 15 : low_byte >> 4;
        const int pair = (byte_at(high, half * 32 + i) >> (2 * quarter)) & 3;
        const int scale = static_cast<int8_t>(byte_at(scales, half * 8 + quarter * 2 + i / 16));
        const int code = (nibble | (pair << 4)) - 32;
        target[half * 128 + quarter * 32 + i] = unit * static_cast<float>(scale) * static_cast<float>(code);
      }
    }
  }
}

using DecodeBlock = void (*)(const std::byte* block, float* target);

DecodeBlock find_decoder(TensorType type) {
  switch (type) {
    case TensorType::kF32: return decode_f32;
    case TensorType::kF16: return decode_f16;
    case TensorType::kBf16: return decode_bf16;
    case TensorType::kQ4_0: return decode_q4_0;
    case TensorType::kQ4_1: return decode_q4_1;
    case TensorType::kQ5_0: return decode_q5_0;
    case TensorType::kQ8_0: return decode_q8_0;
    case TensorType::kQ4K: return decode_q4_k;
    case TensorType::kQ6K: return decode_q6_k;
  }
  return nullptr;
}

}  // namespace

absl::Status dequantize(TensorType type, std::span<const std::byte> source, std::span<float> target) {
  const DecodeBlock decode = find_decoder(type);
  if (decode == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("tensor type ", static_cast<uint32_t>(type), " is not known"));
  }
  const TensorTypeInfo& info = tensor_type_info(type);
  const size_t blocks = target.size() / info.block_elements;
  if (target.size() % info.block_elements != 0 || source.size() % info.block_bytes != 0 ||
      source.size() / info.block_bytes != blocks) {
    return absl::InvalidArgumentError(absl::StrCat(target.size(), " numbers of ", info.name, " come in blocks of ",
                                                   info.block_elements, " numbers and ", info.block_bytes,
                                                   " bytes; got ", source.size(), " bytes"));
  }
  for (size_t block = 0; block < blocks; ++block) {
    decode(source.data() + block * info.block_bytes, target.data() + block * info.block_elements);
  }
  return absl::OkStatus();
}

}  // namespace foldkv_lab
