#include "backends/cpu/onednn_threads.h"

#include <dlfcn.h>

namespace foldkv::backend::cpu {
namespace {

// Looked up in the running process, because which OpenMP library oneDNN brings along, if any, is not ours to choose.
struct OpenmpFunctions {
  int (*get_max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;

  OpenmpFunctions()
      : get_max_threads(reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))),
        set_num_threads(reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {}

  [[nodiscard]] bool present() const { return get_max_threads != nullptr && set_num_threads != nullptr; }
};

const OpenmpFunctions& openmp() {
  static const OpenmpFunctions functions;
  return functions;
}

}  // namespace

SingleOpenmpThread::SingleOpenmpThread() {
  if (!openmp().present()) return;
  before_ = openmp().get_max_threads();
  if (before_ != 1) openmp().set_num_threads(1);
}

SingleOpenmpThread::~SingleOpenmpThread() {
  if (before_ > 1) openmp().set_num_threads(before_);
}

}  // namespace foldkv::backend::cpu
