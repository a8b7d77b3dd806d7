#include "backends/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv::backend::cpu {
namespace {

TEST_CASE("every unit runs once, on a worker of its own") {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads, {});
    CHECK(pool.thread_count() == threads);
    std::vector<std::atomic<int>> busy(static_cast<size_t>(threads));
    std::atomic<int> clashes = 0;
    for (int64_t units = 0; units < 300; ++units) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(units));
      pool.run(units, [&](int64_t unit, int worker) {
        if (busy[static_cast<size_t>(worker)].exchange(1) != 0) ++clashes;
        ++runs[static_cast<size_t>(unit)];
        busy[static_cast<size_t>(worker)] = 0;
      });
      const bool once = std::all_of(runs.begin(), runs.end(), [](const std::atomic<int>& count) { return count == 1; });
      CHECK(once);
    }
    CHECK(clashes == 0);
  }
}

TEST_CASE("plain memory that a unit writes is seen by the caller, and the other way round") {
  ThreadPool pool(3, {});
  std::vector<int64_t> numbers(64);
  for (int64_t round = 0; round < 20'000; ++round) {
    for (int64_t& number : numbers) number = round;
    pool.run(64, [&](int64_t unit, int) { numbers[static_cast<size_t>(unit)] += unit; });
    REQUIRE(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}) == 64 * round + 2016);
  }
}

TEST_CASE("callers that meet at the pool, and tasks that call it again, all get their work done") {
  ThreadPool pool(3, {});
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        std::atomic<int64_t> sum = 0;
        pool.run(5, [&](int64_t unit, int) { pool.run(3, [&](int64_t inner, int) { sum += unit * inner; }); });
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 4 * 2000 * 30);
}

TEST_CASE("threads that have gone to sleep wake up") {
  ThreadPool pool(2, {});
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> units = 0;
    pool.run(10, [&](int64_t, int) { ++units; });
    CHECK(units == 10);
  }
}

TEST_CASE("the host's own threads do the work when it gives some") {
  struct Host {
    int calls = 0;
    int largest_count = 0;
  } host;
  const auto parallel_for = [](void* context, int32_t count, void (*task)(void*, int32_t), void* task_context) {
    auto* seen = static_cast<Host*>(context);
    ++seen->calls;
    seen->largest_count = std::max(seen->largest_count, count);
    std::vector<std::thread> threads;
    for (int32_t index = 0; index < count; ++index) threads.emplace_back(task, task_context, index);
    for (std::thread& thread : threads) thread.join();
  };
  ThreadPool pool(3, {.parallel_for = parallel_for, .context = &host});
  std::vector<int> runs(100);
  pool.run(100, [&](int64_t unit, int worker) { runs[static_cast<size_t>(unit)] += worker < 3 ? 1 : 100; });
  CHECK(runs == std::vector<int>(100, 1));
  CHECK(host.calls == 1);
  CHECK(host.largest_count == 3);
}

TEST_CASE("work that is not worth a wake-up stays on its thread") {
  ThreadPool pool(4, {});
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0;
  pool.run(
      50, [&](int64_t, int) { elsewhere += std::this_thread::get_id() != here ? 1 : 0; }, 1000);
  CHECK(elsewhere == 0);
}

}  // namespace
}  // namespace foldkv::backend::cpu
