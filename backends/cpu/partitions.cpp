#include "backends/cpu/partitions.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kSlots = 512;
constexpr int64_t kEvenPartitions = 32;
constexpr int64_t kEvenSlots = kSlots * kEvenPartitions;
constexpr int64_t kPartitionsOfDoubling = 16;

}  // namespace

int64_t partition_count(int64_t tokens) {
  if (tokens <= kEvenSlots) return divide_up(tokens, kSlots);
  int64_t count = kEvenPartitions;
  int64_t start = kEvenSlots;
  for (; tokens > 2 * start; start *= 2) count += kPartitionsOfDoubling;
  return count + divide_up(tokens - start, start / kPartitionsOfDoubling);
}

int64_t most_partitions(int64_t tokens, int64_t regions) {
  // The count grows ever slower with tokens, so regions of equal length have the most; each may end with a part that
  // is not full.
  if (tokens <= regions * kEvenSlots) return divide_up(tokens, kSlots) + regions;
  int64_t doublings = 0;
  for (; tokens > regions * (kEvenSlots << (doublings + 1)); ++doublings) {
  }
  return regions * kPartitionsOfDoubling * (doublings + 1) +
         divide_up(tokens * kPartitionsOfDoubling, kEvenSlots << doublings) + regions;
}

SlotRange partition(int64_t index, int64_t tokens) {
  int64_t first = index * kSlots;
  int64_t size = kSlots;
  if (index >= kEvenPartitions) {
    const int64_t start = kEvenSlots << (index - kEvenPartitions) / kPartitionsOfDoubling;
    size = start / kPartitionsOfDoubling;
    first = start + (index - kEvenPartitions) % kPartitionsOfDoubling * size;
  }
  return {first, std::min(first + size, tokens)};
}

}  // namespace foldkv::backend::cpu
