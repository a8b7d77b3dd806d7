#pragma once

#include <algorithm>
#include <cstdint>

#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

// function(first, count) for runs of rows that can be computed apart. A run is one product on one thread, and where
// runs begin depends on the number of rows alone: so do the results, to the last bit.
template <typename Function>
void for_row_blocks(int64_t rows, ThreadPool& threads, const Function& function) {
  constexpr int64_t kBlock = 128;  // weights are read once for each block
  threads.parallel_for((rows + kBlock - 1) / kBlock,
                       [&](int64_t block) { function(block * kBlock, std::min(kBlock, rows - block * kBlock)); });
}

}  // namespace foldkv_lab
