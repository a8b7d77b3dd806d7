#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/checked.h"

namespace foldkv::backend::reference {

// Hands out arrays of a workspace. Without memory it only counts: the same code says how much an operation needs and
// then places its arrays.
class Scratch {
 public:
  explicit Scratch(std::byte* memory) : memory_(memory) {}

  template <typename Number>
  [[nodiscard]] Number* take(int64_t count) {
    std::byte* const start = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count * static_cast<int64_t>(sizeof(Number)), kAlignment);
    return reinterpret_cast<Number*>(start);
  }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  static constexpr int64_t kAlignment = 64;

  std::byte* memory_;
  int64_t used_ = 0;
};

}  // namespace foldkv::backend::reference
