#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace foldkv::backend::cpu {

// Threads of one backend. Dispatch allocates nothing. A call that finds the pool busy with another caller's work, and
// any call of a task, runs on its own thread alone; so results must not depend on how many workers take part.
class ThreadPool {
 public:
  // The host's own threads, used in place of ours when set.
  struct HostThreads {
    void (*parallel_for)(void* context, int32_t count, void (*task)(void*, int32_t), void* task_context) = nullptr;
    void* context = nullptr;
  };

  ThreadPool(int thread_count, HostThreads host);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int thread_count() const { return thread_count_; }

  // Calls task(unit, worker) for every unit in [0, units), in no fixed order. worker is below thread_count() and
  // never the same in two tasks of one call that run at once: it names scratch memory. `operations` is about how many
  // arithmetic operations all units take together: less than a wake-up is worth is done alone.
  void run(int64_t units, absl::FunctionRef<void(int64_t unit, int worker)> task, int64_t operations = kManyOperations);

 private:
  static constexpr int64_t kManyOperations = int64_t{1} << 40;

  struct Job {
    int64_t units;
    std::atomic<int64_t> next_unit{0};
    absl::FunctionRef<void(int64_t, int)> task;

    void work(int worker);
  };

  void run_on_own_threads(Job& job);
  void run_on_host_threads(Job& job);
  void worker_loop(int worker);
  [[nodiscard]] uint32_t wait_for_round(uint32_t seen) const;

  int thread_count_;
  HostThreads host_;
  std::atomic<bool> busy_{false};
  std::atomic<uint32_t> round_{0};    // rises with every job
  std::atomic<uint32_t> unfinished_{0};  // own threads still at the job
  bool stopping_ = false;             // written before round_, read after it
  Job* job_ = nullptr;                // likewise
  std::vector<std::thread> threads_;
};

}  // namespace foldkv::backend::cpu
