#include "tests/fault/fault_points.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace foldkv::test {
namespace {

std::atomic<Fault> armed_kind{Fault::kNone};
std::atomic<int64_t> points{0};
std::atomic<int64_t> number{0};
std::atomic<bool> lasting{false};
std::atomic<int64_t> live_blocks{0};

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fault_strikes(Fault::kHeap)) return nullptr;
  // aligned_alloc takes whole multiples of the alignment.
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size > 0 ? size : 1)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (block != nullptr) ++live_blocks;
  return block;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment = 1) {
  void* block = allocate(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void deallocate(void* block) noexcept {
  if (block == nullptr) return;
  --live_blocks;
  std::free(block);
}

}  // namespace

ArmedFault::ArmedFault(const FaultPlan& plan) {
  points = 0;
  number = plan.number;
  lasting = plan.lasting;
  armed_kind = plan.kind;
}

ArmedFault::~ArmedFault() { armed_kind = Fault::kNone; }

bool ArmedFault::struck() { return points >= number; }

bool fault_strikes(Fault kind) {
  if (armed_kind != kind) return false;
  const int64_t point = ++points;
  return point == number || (lasting && point > number);
}

int64_t live_heap_blocks() { return live_blocks; }

}  // namespace foldkv::test

// The operators of this program and of all libraries that it loads.
void* operator new(std::size_t size) { return foldkv::test::allocate_or_throw(size); }
void* operator new[](std::size_t size) { return foldkv::test::allocate_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return foldkv::test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return foldkv::test::allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return foldkv::test::allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return foldkv::test::allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return foldkv::test::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return foldkv::test::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block) noexcept { foldkv::test::deallocate(block); }
void operator delete(void* block, std::size_t) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block, std::size_t) noexcept { foldkv::test::deallocate(block); }
void operator delete(void* block, std::align_val_t) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block, std::align_val_t) noexcept { foldkv::test::deallocate(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { foldkv::test::deallocate(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { foldkv::test::deallocate(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { foldkv::test::deallocate(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  foldkv::test::deallocate(block);
}
