#include "runtime/memory/arena.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/memory/device_copy.h"
#include "runtime/memory/poison.h"

namespace foldkv {
namespace {
constexpr int64_t kIdleResidentBytes = int64_t{1} << 20;
constexpr int64_t kIdleResidentShare = 64;
}  // namespace

StatusOr<std::unique_ptr<Arena>> Arena::create(std::shared_ptr<backend::Backend> backend, int64_t budget) {
  budget = budget / kBlockAlignment * kBlockAlignment;
  if (budget <= 0) {
    return argument_error("budget_bytes", absl::StrCat("is ", budget, ", expected at least ", kBlockAlignment));
  }
  // The reservation ends on a granule so that every granule may be given back; the budget stays the limit.
  FOLDKV_ASSIGN_OR_RETURN(std::byte * memory, backend->reserve_memory(round_up(budget, backend->memory_granularity())));
  return std::unique_ptr<Arena>(new Arena(std::move(backend), memory, budget));
}

Arena::Arena(std::shared_ptr<backend::Backend> backend, std::byte* memory, int64_t budget)
    : backend_(std::move(backend)),
      memory_(memory),
      budget_(budget),
      granularity_(backend_->memory_granularity()),
      touched_(static_cast<size_t>(divide_up(budget, granularity_)), false) {
  add_spare();
  insert_free(0, budget_);
  if (backend_->host_memory()) poison(memory_, round_up(budget_, granularity_));
}

Arena::~Arena() {
  if (backend_->host_memory()) unpoison(memory_, round_up(budget_, granularity_));
  backend_->release_memory(memory_, round_up(budget_, granularity_));
}

StatusOr<std::byte*> Arena::allocate(Role role, int64_t bytes) {
  const int64_t size = block_bytes(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto range = find_free(role, size);
  if (range == free_.end() || (gate_ && !gate_())) {
    const int64_t largest = free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
    return budget_error(size, absl::StrCat("needs a block of ", size, " bytes; ", ledger_.total(), " of the budget of ",
                                           budget_, " bytes are in use and the largest free block has ", largest));
  }
  add_spare();
  const auto [offset, available] = *range;
  erase_free(range);
  // Scratch comes and goes with every step: taken from the top it leaves no holes between pages.
  const int64_t start = role == Role::kScratch ? offset + available - size : offset;
  if (start > offset) insert_free(offset, start - offset);
  if (start + size < offset + available) insert_free(start + size, offset + available - start - size);
  ledger_.charge(role, size);
  peak_ = std::max(peak_, ledger_.total());
  mark_touched(start, size);
  if (backend_->host_memory()) unpoison(memory_ + start, std::max<int64_t>(bytes, 1));
  return memory_ + start;
}

void Arena::release(Role role, std::byte* block, int64_t bytes) {
  if (block == nullptr) return;
  const int64_t size = block_bytes(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto sharers = sharers_.find(block); sharers != sharers_.end()) {
    if (--sharers->second == 0) sharers_.erase(sharers);
    shared_blocks_ = sharers_.size();
    return;
  }
  if (backend_->host_memory()) poison(block, size);
  int64_t offset = block - memory_;
  int64_t merged = size;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + size) {
    merged += next->second;
    const auto after = std::next(next);
    erase_free(next);
    next = after;
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      merged += previous->second;
      erase_free(previous);
    }
  }
  insert_free(offset, merged);
  drop_spare();
  ledger_.charge(role, -size);
}

void Arena::share(std::byte* block) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++sharers_[block];
  shared_blocks_ = sharers_.size();
}

bool Arena::is_shared(const std::byte* block) const {
  if (shared_blocks_ == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return sharers_.contains(block);
}

Status Arena::copy(std::byte* to, const std::byte* from, int64_t bytes) {
  return copy_on_device(*backend_, to, from, bytes);
}

void Arena::give_back() {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t used = ledger_.total();
  const int64_t allowance = kIdleResidentBytes + used / kIdleResidentShare;
  if (resident_ - used > allowance) discard_free();
}

int64_t Arena::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  return discard_free();
}

int64_t Arena::discard_free() {
  const int64_t before = resident_;
  for (const auto& [offset, bytes] : free_) {
    const auto [first, end] = inner_blocks(offset, bytes);
    const int64_t touched = touched_in(first, end);
    if (touched == 0) continue;
    backend_->discard_memory(memory_ + first * granularity_, (end - first) * granularity_);
    std::fill(touched_.begin() + first, touched_.begin() + end, false);
    resident_ -= touched * granularity_;
  }
  return before - resident_;
}

ArenaStats Arena::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  ArenaStats stats;
  stats.budget = budget_;
  stats.peak = peak_;
  stats.resident = resident_;
  stats.largest_free = free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
  stats.ledger = ledger_;
  return stats;
}

void Arena::insert_free(int64_t offset, int64_t bytes) {
  auto range = spare_.extract(spare_.begin());
  range.key() = offset;
  range.mapped() = bytes;
  free_.insert(std::move(range));
  auto size = spare_by_size_.extract(spare_by_size_.begin());
  size.value() = {bytes, offset};
  free_by_size_.insert(std::move(size));
}

void Arena::erase_free(std::map<int64_t, int64_t>::iterator range) {
  auto size = free_by_size_.extract({range->second, range->first});
  size.value() = {next_spare_, 0};
  spare_by_size_.insert(std::move(size));
  auto node = free_.extract(range);
  node.key() = next_spare_++;
  spare_.insert(std::move(node));
}

// All or nothing when the host is out of memory.
void Arena::add_spare() {
  const auto added = spare_.emplace(next_spare_, 0).first;
  absl::Cleanup undo = [&] { spare_.erase(added); };
  spare_by_size_.emplace(next_spare_, 0);
  std::move(undo).Cancel();
  ++next_spare_;
}

void Arena::drop_spare() {
  spare_.erase(spare_.begin());
  spare_by_size_.erase(spare_by_size_.begin());
}

std::map<int64_t, int64_t>::iterator Arena::find_free(Role role, int64_t bytes) {
  if (role == Role::kScratch) {
    for (auto range = free_.end(); range != free_.begin();) {
      --range;
      if (range->second >= bytes) return range;
    }
    return free_.end();
  }
  const auto fit = free_by_size_.lower_bound({bytes, 0});
  return fit == free_by_size_.end() ? free_.end() : free_.find(fit->second);
}

void Arena::mark_touched(int64_t offset, int64_t bytes) {
  for (int64_t block = offset / granularity_; block <= (offset + bytes - 1) / granularity_; ++block) {
    const auto index = static_cast<size_t>(block);
    if (touched_[index]) continue;
    touched_[index] = true;
    resident_ += granularity_;
  }
}

int64_t Arena::touched_in(int64_t first_block, int64_t end_block) const {
  return std::count(touched_.begin() + first_block, touched_.begin() + end_block, true);
}

std::pair<int64_t, int64_t> Arena::inner_blocks(int64_t offset, int64_t bytes) const {
  const int64_t first = divide_up(offset, granularity_);
  // The range that reaches the end of the budget owns the last granule whole.
  const int64_t end = offset + bytes == budget_ ? divide_up(budget_, granularity_) : (offset + bytes) / granularity_;
  return {first, std::max(first, end)};
}

}  // namespace foldkv
