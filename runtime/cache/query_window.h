#pragma once

#include <cstdint>

#include "runtime/memory/block.h"

namespace foldkv {

// Queries of the last rows of a prompt that may go on, with the log-sum-exps of their attention, for eviction policies
// that look at these rows once the prompt has ended. For each layer over which a policy decides, after each other:
//
//   queries [room][query heads][head size] f32, rotated | log-sum-exp [room][query heads] f32
struct QueryWindow {
  Block memory;
  int64_t room = 0;  // rows
  int64_t rows = 0;  // that hold something, the first ones
};

}  // namespace foldkv
