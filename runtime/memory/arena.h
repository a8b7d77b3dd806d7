#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/interface/backend.h"
#include "runtime/memory/allocator.h"

namespace foldkv {

struct ArenaStats {
  int64_t budget = 0;
  int64_t peak = 0;
  int64_t resident = 0;  // touched and not given back
  int64_t largest_free = 0;
  Ledger ledger;
};

// The only memory a runtime uses for caches: one range of the device, reserved once, touched on use.
//
//   | pages, best fit, low addresses first ...          free          ... scratch from the top |
//
// Free neighbours are merged at once. Physical memory of free ranges is given back when more than a small
// share of what is in use would stay resident without need (give_back), so that the process's resident memory
// follows the ledger. All functions may be called from several threads.
class Arena final : public Allocator {
 public:
  [[nodiscard]] static StatusOr<std::unique_ptr<Arena>> create(std::shared_ptr<backend::Backend> backend,
                                                               int64_t budget);
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] StatusOr<std::byte*> allocate(Role role, int64_t bytes) override;
  void release(Role role, std::byte* block, int64_t bytes) override;
  void share(std::byte* block) override;
  [[nodiscard]] bool is_shared(const std::byte* block) const override;
  [[nodiscard]] Status copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  // Gives physical memory of free ranges back when it exceeds 1 MiB plus 1/64 of the bytes in use.
  void give_back();
  // Gives all of it back; how many bytes that were.
  int64_t trim();

  // For tests that let every allocation fail in turn: asked before each one; false refuses it as a budget that does not
  // hold it. Set while nobody allocates.
  void set_gate(std::function<bool()> gate) { gate_ = std::move(gate); }

  [[nodiscard]] ArenaStats stats() const;

 private:
  Arena(std::shared_ptr<backend::Backend> backend, std::byte* memory, int64_t budget);

  int64_t discard_free();
  void insert_free(int64_t offset, int64_t bytes);
  void erase_free(std::map<int64_t, int64_t>::iterator range);
  void add_spare();
  void drop_spare();
  std::map<int64_t, int64_t>::iterator find_free(Role role, int64_t bytes);
  void mark_touched(int64_t offset, int64_t bytes);
  [[nodiscard]] int64_t touched_in(int64_t first_block, int64_t end_block) const;
  // The blocks of memory granularity that lie wholly inside [offset, offset + bytes).
  [[nodiscard]] std::pair<int64_t, int64_t> inner_blocks(int64_t offset, int64_t bytes) const;

  std::shared_ptr<backend::Backend> backend_;
  std::byte* memory_;
  int64_t budget_;
  int64_t granularity_;
  mutable std::mutex mutex_;
  std::map<int64_t, int64_t> free_;                     // offset -> bytes
  std::set<std::pair<int64_t, int64_t>> free_by_size_;  // (bytes, offset)
  // Nodes for free ranges, so that giving back never needs memory of the host: there are as many nodes as blocks and
  // one more, and never more ranges than that. Keys say nothing.
  std::map<int64_t, int64_t> spare_;
  std::set<std::pair<int64_t, int64_t>> spare_by_size_;
  int64_t next_spare_ = 0;
  std::vector<bool> touched_;  // one for each block of memory granularity
  // Holders beyond the first, of shared blocks. (Abseil's tables do not outlive an allocation that fails.)
  std::unordered_map<const std::byte*, int64_t> sharers_;
  std::atomic<size_t> shared_blocks_{0};  // their number, so that most questions need no lock
  int64_t resident_ = 0;
  int64_t peak_ = 0;
  Ledger ledger_;
  std::function<bool()> gate_;
};

}  // namespace foldkv
