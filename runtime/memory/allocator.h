#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/checked.h"
#include "runtime/base/status.h"
#include "runtime/memory/ledger.h"

namespace foldkv {

// Every block starts at a multiple of this and is charged as a multiple of it.
inline constexpr int64_t kBlockAlignment = 64;

[[nodiscard]] constexpr int64_t block_bytes(int64_t bytes) { return round_up(bytes > 0 ? bytes : 1, kBlockAlignment); }

// Where cache memory comes from: the arena, or a counter that only adds up what an arena would give.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // bytes >= 0. Budget error when the limit does not hold it.
  [[nodiscard]] virtual StatusOr<std::byte*> allocate(Role role, int64_t bytes) = 0;
  // With the role and bytes of the allocation. A shared block loses one of its holders.
  virtual void release(Role role, std::byte* block, int64_t bytes) = 0;

  // One holder more of a block: it is charged once, and given back when every holder has released it. A holder of a
  // shared block only reads it.
  virtual void share(std::byte* block) = 0;
  [[nodiscard]] virtual bool is_shared(const std::byte* block) const = 0;
  // The contents of a block of so many bytes to another.
  [[nodiscard]] virtual Status copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
};

}  // namespace foldkv
