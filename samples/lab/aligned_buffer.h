#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace foldkv_lab {

// Uninitialised numbers on a cache line boundary. Pages that are never written cost no memory.
template <typename Number>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size)
      : data_(static_cast<Number*>(std::aligned_alloc(kAlignment, round_up(static_cast<size_t>(size))))), size_(size) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  [[nodiscard]] Number* data() { return data_.get(); }
  [[nodiscard]] const Number* data() const { return data_.get(); }
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  static constexpr size_t kAlignment = 64;
  static size_t round_up(size_t count) {
    return (count * sizeof(Number) + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  }
  struct Free {
    void operator()(Number* memory) const { std::free(memory); }
  };

  std::unique_ptr<Number[], Free> data_;
  int64_t size_ = 0;
};

using FloatBuffer = AlignedBuffer<float>;

}  // namespace foldkv_lab
