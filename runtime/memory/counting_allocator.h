#pragma once

#include <algorithm>

#include "runtime/memory/allocator.h"

namespace foldkv {

// Counts what the same calls would take from an arena. Blocks are not memory: they may not be touched.
class CountingAllocator final : public Allocator {
 public:
  StatusOr<std::byte*> allocate(Role role, int64_t bytes) override {
    ledger_.charge(role, block_bytes(bytes));
    peak_ = std::max(peak_, ledger_.total());
    return reinterpret_cast<std::byte*>(kBlockAlignment);
  }
  void release(Role role, std::byte* /*block*/, int64_t bytes) override { ledger_.charge(role, -block_bytes(bytes)); }

  // Blocks of a count have one holder each.
  void share(std::byte* /*block*/) override {}
  [[nodiscard]] bool is_shared(const std::byte* /*block*/) const override { return false; }
  Status copy(std::byte* /*to*/, const std::byte* /*from*/, int64_t /*bytes*/) override { return absl::OkStatus(); }

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] int64_t peak() const { return peak_; }

 private:
  Ledger ledger_;
  int64_t peak_ = 0;
};

}  // namespace foldkv
