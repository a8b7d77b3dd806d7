#pragma once

#include <cstdint>
#include <functional>

namespace foldkv {

// Calls task(0) to task(count - 1) in any order on up to `threads` threads, the caller's included, and returns when all
// have returned. Fewer threads when the system gives no more. task must not throw.
void run_tasks(int64_t count, int threads, const std::function<void(int64_t)>& task);

}  // namespace foldkv
