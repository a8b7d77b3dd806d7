#pragma once

#include <memory>
#include <utility>

#include "runtime/memory/allocator.h"

namespace foldkv {

// One block of an allocator, given back when it goes out of scope.
class Block {
 public:
  Block() = default;
  [[nodiscard]] static StatusOr<Block> allocate(Allocator& allocator, Role role, int64_t bytes) {
    FOLDKV_ASSIGN_OR_RETURN(std::byte * data, allocator.allocate(role, bytes));
    return Block(allocator, role, data, bytes);
  }
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(role_, other.role_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Block() { reset(); }

  // The same block, held once more; nothing for nothing.
  [[nodiscard]] Block share() const {
    if (data_ == nullptr) return Block();
    allocator_->share(data_);
    return Block(*allocator_, role_, data_, bytes_);
  }
  [[nodiscard]] int64_t shared_bytes() const {
    return data_ != nullptr && allocator_->is_shared(data_) ? charged_bytes() : 0;
  }

  void reset() {
    if (data_ != nullptr) allocator_->release(role_, data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t charged_bytes() const { return data_ == nullptr ? 0 : block_bytes(bytes_); }
  [[nodiscard]] int64_t bytes() const { return data_ == nullptr ? 0 : bytes_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] explicit operator bool() const { return data_ != nullptr; }

 private:
  Block(Allocator& allocator, Role role, std::byte* data, int64_t bytes)
      : allocator_(&allocator), role_(role), data_(data), bytes_(bytes) {}

  Allocator* allocator_ = nullptr;
  Role role_ = Role::kScratch;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace foldkv
