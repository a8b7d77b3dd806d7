#include "runtime/calibration/run_tasks.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace foldkv {

void run_tasks(int64_t count, int threads, const std::function<void(int64_t)>& task) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t index = next++; index < count; index = next++) task(index);
  };
  std::vector<std::jthread> helpers;
  const int64_t wanted = std::min<int64_t>(threads, count) - 1;
  try {
    while (static_cast<int64_t>(helpers.size()) < wanted) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run do all of it.
  }
  work();
}

}  // namespace foldkv
