#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "backends/cpu/onednn_threads.h"
#include "backends/cpu/products.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

// Fixed tiles, so that results do not depend on the number of threads.
constexpr int64_t kRows = 256;
constexpr int64_t kColumns = 192;
constexpr int64_t kAlignment = 64;

dnnl::memory::desc matrix_desc(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  return {{rows, columns}, dnnl::memory::data_type::f32, {row_stride, column_stride}};
}

// x [rows][inner] times the transpose of weight [columns][inner], with the strides of the whole matrices.
dnnl::matmul::primitive_desc matmul_desc(const dnnl::engine& engine, const ProductShape& shape, int64_t rows,
                                         int64_t columns) {
  const dnnl::memory::desc x = matrix_desc(rows, shape.inner, shape.inner, 1);
  const dnnl::memory::desc weight = matrix_desc(shape.inner, columns, 1, shape.inner);
  const dnnl::memory::desc y = matrix_desc(rows, columns, shape.columns, 1);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, x, weight, y, attributes};
#else
  return {dnnl::matmul::desc(x, weight, y), attributes, engine};
#endif
}

// The product of one size of tile, with memory objects for each worker, whose pointers are set when it runs.
class TileProduct {
 public:
  TileProduct(const dnnl::engine& engine, const ProductShape& shape, int64_t rows, int64_t columns, int64_t workers) {
    const dnnl::matmul::primitive_desc desc = matmul_desc(engine, shape, rows, columns);
    matmul_ = dnnl::matmul(desc);
    scratch_bytes_ = round_up(static_cast<int64_t>(desc.scratchpad_desc().get_size()), kAlignment);
    for (int64_t worker = 0; worker < workers; ++worker) {
      workers_.push_back({dnnl::memory(desc.src_desc(), engine, nullptr),
                          dnnl::memory(desc.weights_desc(), engine, nullptr),
                          dnnl::memory(desc.dst_desc(), engine, nullptr),
                          dnnl::memory(desc.scratchpad_desc(), engine, nullptr), dnnl::stream(engine)});
    }
  }

  struct Pointers {
    const float* x;
    const float* weight;
    float* y;
    std::byte* scratch;
  };
  // The C functions, since those of C++ allocate their arguments anew. Returns oneDNN's status.
  [[nodiscard]] int run(int worker, const Pointers& pointers) const {
    const Memories& memories = workers_[static_cast<size_t>(worker)];
    const std::array<dnnl_exec_arg_t, 4> arguments = {{{DNNL_ARG_SRC, memories.x.get()},
                                                       {DNNL_ARG_WEIGHTS, memories.weight.get()},
                                                       {DNNL_ARG_DST, memories.y.get()},
                                                       {DNNL_ARG_SCRATCHPAD, memories.scratch.get()}}};
    const std::array<void*, 4> handles = {const_cast<float*>(pointers.x), const_cast<float*>(pointers.weight),
                                          pointers.y, pointers.scratch};
    for (size_t i = 0; i < handles.size(); ++i) {
      const dnnl_status_t status = dnnl_memory_set_data_handle(arguments[i].memory, handles[i]);
      if (status != dnnl_success) return status;
    }
    return dnnl_primitive_execute(matmul_.get(), memories.stream.get(), static_cast<int>(arguments.size()),
                                  arguments.data());
  }

  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Memories {
    dnnl::memory x, weight, y, scratch;
    dnnl::stream stream;
  };
  dnnl::matmul matmul_;
  int64_t scratch_bytes_ = 0;
  std::vector<Memories> workers_;
};

class OnednnProduct final : public Product {
 public:
  OnednnProduct(const Engine& engine, const ProductShape& shape)
      : engine_(engine), shape_(shape), own_(make_packed_product(engine, shape)) {
    const dnnl::engine device(dnnl::engine::kind::cpu, 0);
    column_sizes_ = std::ssize(tile_sizes(shape.columns, kColumns));
    for (const int64_t rows : tile_sizes(shape.rows, kRows)) {
      for (const int64_t columns : tile_sizes(shape.columns, kColumns)) {
        tiles_.emplace_back(device, shape, rows, columns, engine.workers());
        scratch_bytes_ = std::max(scratch_bytes_, tiles_.back().scratch_bytes());
      }
    }
  }

  [[nodiscard]] int64_t workspace_bytes() const override {
    return std::max(engine_.workers() * scratch_bytes_ + kAlignment, own_->workspace_bytes());
  }

  [[nodiscard]] Status run(const ProductRequest& request) override {
    // The primitives know dense f32 weights only.
    if (request.weight.format != NumberFormat::kF32 || request.weight.row_stride != shape_.inner) {
      return own_->run(request);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    std::atomic<int> failure = dnnl_success;
    const int64_t row_tiles = divide_up(shape_.rows, kRows);
    engine_.threads.run(row_tiles * divide_up(shape_.columns, kColumns), [&](int64_t unit, int worker) {
      const int status = run_tile(request, unit % row_tiles * kRows, unit / row_tiles * kColumns, worker);
      if (status != dnnl_success) failure = status;
    });
    if (failure == dnnl_success) return absl::OkStatus();
    return backend_error(failure, absl::StrCat("oneDNN failed to multiply matrices (status ", failure.load(), ")"));
  }

 private:
  // A full tile, if there is one, then the rest, if there is one.
  static std::vector<int64_t> tile_sizes(int64_t size, int64_t tile) {
    std::vector<int64_t> sizes;
    if (size >= tile) sizes.push_back(tile);
    if (size % tile != 0) sizes.push_back(size % tile);
    return sizes;
  }
  static int64_t index_of_size(int64_t size, int64_t tile, int64_t start) {
    return start + tile <= size || size < tile ? 0 : 1;
  }

  [[nodiscard]] int run_tile(const ProductRequest& request, int64_t row, int64_t column, int worker) const {
    const SingleOpenmpThread single;
    const int64_t index = index_of_size(shape_.rows, kRows, row) * column_sizes_ +
                          index_of_size(shape_.columns, kColumns, column);
    const auto address = reinterpret_cast<uintptr_t>(request.workspace);
    std::byte* scratch = request.workspace + (round_up(static_cast<int64_t>(address), kAlignment) -
                                              static_cast<int64_t>(address)) + worker * scratch_bytes_;
    const int status = tiles_[static_cast<size_t>(index)].run(
        worker, {.x = request.x + row * shape_.inner,
                 .weight = reinterpret_cast<const float*>(request.weight.data) + column * shape_.inner,
                 .y = request.y + row * shape_.columns + column,
                 .scratch = scratch});
    if (status == dnnl_success && request.bias.present()) add_bias(request, row, column);
    return status;
  }

  void add_bias(const ProductRequest& request, int64_t row, int64_t column) const {
    const int64_t columns = std::min(kColumns, shape_.columns - column);
    const NumberFormat format = request.bias.format;
    float bias[kColumns];
    engine_.kernels.to_f32(format, request.bias.data + column * bytes_of(format), columns, bias);
    for (int64_t r = row; r < std::min(row + kRows, shape_.rows); ++r) {
      float* y = request.y + r * shape_.columns + column;
      for (int64_t c = 0; c < columns; ++c) y[c] += bias[c];
    }
  }

  Engine engine_;
  ProductShape shape_;
  std::unique_ptr<Product> own_;
  std::vector<TileProduct> tiles_;  // [sizes of row tiles][sizes of column tiles]
  int64_t column_sizes_ = 0;
  int64_t scratch_bytes_ = 0;
  std::mutex mutex_;  // the memory objects are changed by every run
};

}  // namespace

std::unique_ptr<Product> make_onednn_product(const Engine& engine, const ProductShape& shape) {
  if (shape.rows < 1 || shape.inner < 1 || shape.columns < 1) return nullptr;
  try {
    const SingleOpenmpThread single;
    return std::make_unique<OnednnProduct>(engine, shape);
  } catch (const dnnl::error&) {
    return nullptr;  // oneDNN has nothing for this shape or machine: ours does
  }
}

}  // namespace foldkv::backend::cpu
