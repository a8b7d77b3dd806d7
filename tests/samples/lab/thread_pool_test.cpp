#include "samples/lab/thread_pool.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("every index runs once, loop after loop") {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (int64_t count = 0; count < 300; count += 7) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool.parallel_for(count, [&](int64_t i) { runs[static_cast<size_t>(i)].fetch_add(1); });
      for (const std::atomic<int>& run : runs) CHECK(run.load() == 1);
    }
    int64_t sum = 0;  // little work stays on this thread
    pool.parallel_for(10, 10, [&](int64_t i) { sum += i; });
    CHECK(sum == 45);
  }
}

TEST_CASE("threads that fell asleep wake up") {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> runs = 0;
    pool.parallel_for(100, [&](int64_t) { runs.fetch_add(1); });
    CHECK(runs.load() == 100);
  }
}

}  // namespace
}  // namespace foldkv_lab::test
