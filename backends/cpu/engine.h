#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/thread_pool.h"

namespace foldkv::backend::cpu {

// What every operation of the cpu backend works with.
struct Engine {
  const Kernels& kernels;
  ThreadPool& threads;

  [[nodiscard]] int64_t workers() const { return threads.thread_count(); }
};

}  // namespace foldkv::backend::cpu
