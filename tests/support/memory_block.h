#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define FOLDKV_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOLDKV_TEST_ASAN 1
#endif
#endif
#if !defined(FOLDKV_TEST_ASAN)
#define FOLDKV_TEST_ASAN 0
#endif

namespace foldkv::test {

// What unused memory is filled with. kPoison is a NaN in every number format, the largest code, a NaN scale and
// position -1, which every query sees.
inline constexpr std::byte kZero{0x00};
inline constexpr std::byte kPoison{0xff};

// Aligned memory of its own allocation, followed by a canary where no sanitizer watches its end.
class MemoryBlock {
 public:
  static constexpr int64_t kAlignment = 64;

  MemoryBlock(int64_t bytes, std::byte fill)
      : bytes_(bytes), data_(static_cast<std::byte*>(operator new(allocated_bytes(), alignment()))) {
    std::fill_n(data_, bytes_, fill);
    std::fill_n(data_ + bytes_, kCanaryBytes, kCanary);
  }
  MemoryBlock(const MemoryBlock& other) : MemoryBlock(other.bytes_, kZero) { std::copy_n(other.data_, bytes_, data_); }
  MemoryBlock(MemoryBlock&& other) noexcept : bytes_(other.bytes_), data_(other.data_) { other.data_ = nullptr; }
  MemoryBlock& operator=(const MemoryBlock&) = delete;
  ~MemoryBlock() {
    if (data_ != nullptr) operator delete(data_, alignment());
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] bool canary_alive() const {
    return std::all_of(data_ + bytes_, data_ + bytes_ + kCanaryBytes, [](std::byte b) { return b == kCanary; });
  }

 private:
  static constexpr std::byte kCanary{0xa5};
#if FOLDKV_TEST_ASAN
  static constexpr int64_t kCanaryBytes = 0;
#else
  static constexpr int64_t kCanaryBytes = 64;
#endif
  [[nodiscard]] static std::align_val_t alignment() { return std::align_val_t{kAlignment}; }
  [[nodiscard]] size_t allocated_bytes() const {
    return static_cast<size_t>(std::max<int64_t>(bytes_, 1) + kCanaryBytes);
  }

  int64_t bytes_;
  std::byte* data_;
};

}  // namespace foldkv::test
