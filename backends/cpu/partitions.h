#pragma once

#include <cstdint>

// The parts of a region over which attention is summed separately, then merged in order. Their bounds depend on slots
// alone, never on threads, rows or the region's length: 512 slots each up to 16,384 slots, then sixteen for every
// doubling, so that long regions need few partial sums.
namespace foldkv::backend::cpu {

struct SlotRange {
  int64_t first = 0;
  int64_t end = 0;
};

[[nodiscard]] int64_t partition_count(int64_t tokens);
// The most that so many regions of so many tokens in all can have. Never falls when a number rises.
[[nodiscard]] int64_t most_partitions(int64_t tokens, int64_t regions);
// Cut off at `tokens`.
[[nodiscard]] SlotRange partition(int64_t index, int64_t tokens);

}  // namespace foldkv::backend::cpu
