#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace foldkv::backend::cpu {

// An array of a page with a row for each token.
struct PageRows {
  int64_t offset = 0;
  int64_t row_bytes = 0;
};

// Tokens that move down, in place; slots as in MoveRequest.
struct SlotMoves {
  std::byte* const* pages = nullptr;
  int64_t page_tokens = 0;
  const int32_t* slots = nullptr;
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
};

void move_slots(const SlotMoves& moves, std::span<const PageRows> arrays);

}  // namespace foldkv::backend::cpu
