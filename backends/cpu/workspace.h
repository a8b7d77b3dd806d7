#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {

// Hands out parts of a workspace, each on a cache line. The same walk without memory counts the bytes.
class Workspace {
 public:
  static constexpr int64_t kAlignment = 64;

  explicit Workspace(std::byte* memory) : memory_(memory) {}

  // Null while counting.
  template <typename Number>
  Number* take(int64_t count) {
    // The caller's memory may begin anywhere; its first line is spent on that (see bytes).
    std::byte* place = nullptr;
    if (memory_ != nullptr) {
      const auto address = reinterpret_cast<uintptr_t>(memory_);
      place = memory_ + ((address + kAlignment - 1) / kAlignment * kAlignment - address) + used_;
    }
    used_ += round_up(count * static_cast<int64_t>(sizeof(Number)), kAlignment);
    return reinterpret_cast<Number*>(place);
  }

  [[nodiscard]] int64_t bytes() const { return used_ + kAlignment; }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

}  // namespace foldkv::backend::cpu
