#include "backends/cpu/thread_pool.h"

#include <algorithm>

namespace foldkv::backend::cpu {
namespace {

// Layers follow each other within microseconds, so a short look saves the wake-up; a long one would take the core
// from the host's own threads.
constexpr int kSpins = 2000;
// About ten microseconds of one thread.
constexpr int64_t kWorthSharing = 1'000'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int thread_count, HostThreads host)
    : thread_count_(std::max(thread_count, 1)), host_(host) {
  if (host_.parallel_for != nullptr) return;
  threads_.reserve(static_cast<size_t>(thread_count_ - 1));
  for (int worker = 1; worker < thread_count_; ++worker) {
    threads_.emplace_back([this, worker] { worker_loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Job::work(int worker) {
  for (int64_t unit = next_unit++; unit < units; unit = next_unit++) task(unit, worker);
}

void ThreadPool::run(int64_t units, absl::FunctionRef<void(int64_t, int)> task, int64_t operations) {
  Job job{.units = units, .task = task};
  const bool worth_sharing = units > 1 && thread_count_ > 1 && operations >= kWorthSharing;
  if (!worth_sharing || busy_.exchange(true, std::memory_order_acquire)) {
    job.work(0);
    return;
  }
  if (host_.parallel_for != nullptr) {
    run_on_host_threads(job);
  } else {
    run_on_own_threads(job);
  }
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::run_on_host_threads(Job& job) {
  host_.parallel_for(
      host_.context, static_cast<int32_t>(std::min<int64_t>(job.units, thread_count_)),
      [](void* context, int32_t worker) { static_cast<Job*>(context)->work(worker); }, &job);
}

void ThreadPool::run_on_own_threads(Job& job) {
  job_ = &job;
  unfinished_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  job.work(0);
  // The job lives on this stack: every thread must have let go of it, even one that came too late for a unit.
  int spins = 0;
  for (uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    if (++spins < kSpins) {
      pause();
    } else {
      unfinished_.wait(left, std::memory_order_acquire);
    }
  }
}

uint32_t ThreadPool::wait_for_round(uint32_t seen) const {
  for (int spins = 0; spins < kSpins; ++spins) {
    const uint32_t round = round_.load(std::memory_order_acquire);
    if (round != seen) return round;
    pause();
  }
  round_.wait(seen, std::memory_order_acquire);
  return round_.load(std::memory_order_acquire);
}

void ThreadPool::worker_loop(int worker) {
  uint32_t seen = 0;
  while (true) {
    const uint32_t round = wait_for_round(seen);
    if (round == seen) continue;
    seen = round;
    if (stopping_) return;
    job_->work(worker);
    if (unfinished_.fetch_sub(1, std::memory_order_release) == 1) unfinished_.notify_one();
  }
}

}  // namespace foldkv::backend::cpu
