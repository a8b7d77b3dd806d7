#include <algorithm>

#include "backends/cpu/products.h"
#include "backends/cpu/workspace.h"

namespace foldkv::backend::cpu {
namespace {

// Weights are transposed, block by block, so that lanes are columns: a number is one chain of fused multiply-adds over
// the inner dimension in order, whatever the number of rows.
class PackedProduct final : public Product {
 public:
  PackedProduct(const Engine& engine, const ProductShape& shape) : engine_(engine), shape_(shape) {}

  [[nodiscard]] int64_t workspace_bytes() const override {
    Workspace workspace(nullptr);
    for (int64_t worker = 0; worker < engine_.workers(); ++worker) Scratch::take(workspace, shape_);
    return workspace.bytes();
  }

  [[nodiscard]] Status run(const ProductRequest& request) override {
    const int64_t row_tiles = divide_up(shape_.rows, kRows);
    engine_.threads.run(
        divide_up(shape_.columns, kTile) * row_tiles,
        [&](int64_t unit, int worker) {
          Workspace workspace(request.workspace);
          Scratch scratch = Scratch::take(workspace, shape_);
          for (int i = 0; i < worker; ++i) scratch = Scratch::take(workspace, shape_);
          run_tile(request, unit % row_tiles * kRows, unit / row_tiles * kTile, scratch);
        },
        2 * shape_.rows * shape_.inner * shape_.columns);
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kRows = 256;
  static constexpr int64_t kDepth = 512;  // of weights packed at once

  struct Scratch {
    float* weights = nullptr;  // [depth][64]
    float* y = nullptr;        // [rows][64]

    static Scratch take(Workspace& workspace, const ProductShape& shape) {
      Scratch scratch;
      scratch.weights = workspace.take<float>(std::min(kDepth, shape.inner) * kTile);
      scratch.y = workspace.take<float>(std::min(kRows, shape.rows) * kTile);
      return scratch;
    }
  };

  void run_tile(const ProductRequest& request, int64_t row, int64_t column, const Scratch& scratch) const {
    const int64_t rows = std::min(kRows, shape_.rows - row);
    for (int64_t first = 0; first < std::max<int64_t>(shape_.inner, 1); first += kDepth) {
      const int64_t depth = std::min(kDepth, shape_.inner - first);
      pack(request, column, first, depth, scratch);
      engine_.kernels.matrix_product(
          {.rows = rows,
           .columns = kTile,
           .depth = depth,
           .a = request.x + row * shape_.inner + first,
           .a_stride = shape_.inner,
           .b = scratch.weights,
           .b_stride = kTile,
           .c = scratch.y,
           .c_stride = kTile,
           .start = first == 0 ? MatrixProduct::Start::kZero : MatrixProduct::Start::kKeep});
    }
    store(request, row, rows, column, scratch);
  }

  // Rows of weights become columns; those beyond the last are zero.
  void pack(const ProductRequest& request, int64_t column, int64_t first, int64_t depth,
            const Scratch& scratch) const {
    const std::byte* rows[kTile] = {};
    for (int64_t i = 0; i < std::min(kTile, shape_.columns - column); ++i) {
      rows[i] = request.weight.row(column + i) + first * bytes_of(request.weight.format);
    }
    engine_.kernels.transpose_tile(request.weight.format, rows, depth, scratch.weights);
  }

  void store(const ProductRequest& request, int64_t row, int64_t rows, int64_t column, const Scratch& scratch) const {
    const int64_t columns = std::min(kTile, shape_.columns - column);
    float bias[kTile] = {};
    if (request.bias.present()) {
      const NumberFormat format = request.bias.format;
      engine_.kernels.to_f32(format, request.bias.data + column * bytes_of(format), columns, bias);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = scratch.y + r * kTile;
      float* to = request.y + (row + r) * shape_.columns + column;
      for (int64_t c = 0; c < columns; ++c) to[c] = from[c] + bias[c];
    }
  }

  Engine engine_;
  ProductShape shape_;
};

}  // namespace

std::unique_ptr<Product> make_packed_product(const Engine& engine, const ProductShape& shape) {
  return std::make_unique<PackedProduct>(engine, shape);
}

}  // namespace foldkv::backend::cpu
