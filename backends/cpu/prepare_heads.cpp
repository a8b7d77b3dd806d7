#include <algorithm>

#include "backends/cpu/rotation_table.h"
#include "backends/cpu/rows.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

constexpr int64_t kRows = 8;

void prepare_row(const Engine& engine, const PrepareHeadsRequest& request, const RotationTable& rotation,
                 int64_t row) {
  const Kernels& kernels = engine.kernels;
  const int64_t width = request.heads * request.head_size;
  float* output = request.output + row * width;
  kernels.to_f32(request.input.format, request.input.row(row), width, output);
  float cosines[kLargestHead / 2];
  float sines[kLargestHead / 2];
  if (rotation.pairs > 0) kernels.rotation_row(rotation, request.positions[row], cosines, sines);
  for (float* head = output; head < output + width; head += request.head_size) {
    if (request.norm != nullptr) kernels.norm_head(request.norm, request.norm_epsilon, request.head_size, head);
    if (rotation.pairs > 0) kernels.rotate_row(rotation, cosines, sines, head);
  }
}

}  // namespace

void prepare_heads(const Engine& engine, const PrepareHeadsRequest& request) {
  const RotationTable rotation = rotation_table(request.rotation);
  engine.threads.run(divide_up(request.input.row_count, kRows), [&](int64_t unit, int) {
    const int64_t end = std::min((unit + 1) * kRows, request.input.row_count);
    for (int64_t row = unit * kRows; row < end; ++row) prepare_row(engine, request, rotation, row);
  });
}

}  // namespace foldkv::backend::cpu
