#include <algorithm>
#include <atomic>

#include "backends/cpu/rows.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kRows = 16;

}  // namespace

bool all_finite(const Engine& engine, const TensorView& view) {
  std::atomic<bool> finite = true;
  engine.threads.run(divide_up(view.row_count, kRows), [&](int64_t unit, int) {
    const int64_t end = std::min((unit + 1) * kRows, view.row_count);
    for (int64_t row = unit * kRows; row < end; ++row) {
      if (!engine.kernels.all_finite(view.format, view.row(row), view.column_count)) finite = false;
    }
  });
  return finite;
}

}  // namespace foldkv::backend::cpu
