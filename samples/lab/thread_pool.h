#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace foldkv_lab {

// A fixed number of threads, the caller's included, that run the indices of one loop at a time. Threads wait for the
// next loop awake for some microseconds, since a decoded token is hundreds of short loops, and then asleep. One thread
// at a time may call run.
class ThreadPool {
 public:
  using Task = void (*)(void* context, int32_t index);

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs task(context, i) for all i in [0, count) and returns when all have returned.
  void run(int32_t count, Task task, void* context);

  // A loop of less work than this many multiply-adds in all is over before other threads have noticed it.
  static constexpr int64_t kWorthSharing = 1 << 16;

  // function(i) for all i in [0, count). work: about how many multiply-adds the whole loop is.
  template <typename Function>
  void parallel_for(int64_t count, int64_t work, const Function& function) {
    if (work >= kWorthSharing) return parallel_for(count, function);
    for (int64_t i = 0; i < count; ++i) function(i);
  }

  template <typename Function>
  void parallel_for(int64_t count, const Function& function) {
    run(
        static_cast<int32_t>(count),
        [](void* context, int32_t index) { (*static_cast<const Function*>(context))(static_cast<int64_t>(index)); },
        const_cast<Function*>(&function));
  }

 private:
  void work();
  void run_indices();
  uint64_t await_loop(uint64_t last_loop) const;

  std::vector<std::thread> workers_;
  std::atomic<uint64_t> loop_ = 0;  // number of the current loop
  std::atomic<int32_t> next_index_ = 0;
  std::atomic<int32_t> busy_workers_ = 0;
  std::atomic<bool> stopping_ = false;
  int32_t count_ = 0;
  Task task_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace foldkv_lab
