#include "samples/lab/thread_pool.h"

namespace foldkv_lab {
namespace {

constexpr int kAwakeChecks = 1000;  // some tens of microseconds

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  loop_.fetch_add(1);
  loop_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int32_t count, Task task, void* context) {
  if (workers_.empty() || count <= 1) {
    for (int32_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  count_ = count;
  task_ = task;
  context_ = context;
  next_index_.store(0, std::memory_order_relaxed);
  busy_workers_.store(static_cast<int32_t>(workers_.size()), std::memory_order_relaxed);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  run_indices();
  // A worker may still sleep: it is waited for too, so that no loop meets a latecomer of the one before.
  for (int checks = 0; busy_workers_.load(std::memory_order_acquire) > 0;) {
    if (++checks < kAwakeChecks) {
      relax();
      continue;
    }
    const int32_t busy = busy_workers_.load(std::memory_order_acquire);
    if (busy > 0) busy_workers_.wait(busy, std::memory_order_acquire);
  }
}

void ThreadPool::run_indices() {
  for (;;) {
    const int32_t index = next_index_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    task_(context_, index);
  }
}

uint64_t ThreadPool::await_loop(uint64_t last_loop) const {
  for (int checks = 0; checks < kAwakeChecks; ++checks) {
    const uint64_t loop = loop_.load(std::memory_order_acquire);
    if (loop != last_loop) return loop;
    relax();
  }
  loop_.wait(last_loop, std::memory_order_acquire);
  return loop_.load(std::memory_order_acquire);
}

void ThreadPool::work() {
  uint64_t loop = 0;
  for (;;) {
    loop = await_loop(loop);
    if (stopping_.load()) return;
    run_indices();
    if (busy_workers_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_workers_.notify_one();
  }
}

}  // namespace foldkv_lab
