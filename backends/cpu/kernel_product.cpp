#include <algorithm>

#include "backends/cpu/products.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

// A tile's weights stay in the second cache while its rows go by.
constexpr int64_t kColumns = 64;
constexpr int64_t kRows = 64;

class KernelProduct final : public Product {
 public:
  KernelProduct(const Engine& engine, const ProductShape& shape) : engine_(engine), shape_(shape) {}

  [[nodiscard]] int64_t workspace_bytes() const override { return 0; }

  [[nodiscard]] Status run(const ProductRequest& request) override {
    const int64_t row_tiles = divide_up(shape_.rows, kRows);
    engine_.threads.run(divide_up(shape_.columns, kColumns) * row_tiles, [&](int64_t unit, int) {
      run_tile(request, unit % row_tiles * kRows, unit / row_tiles * kColumns);
    });
    return absl::OkStatus();
  }

 private:
  void run_tile(const ProductRequest& request, int64_t row, int64_t column) const {
    const int64_t columns = std::min(kColumns, shape_.columns - column);
    float bias[kColumns];
    if (request.bias.present()) {
      const NumberFormat format = request.bias.format;
      engine_.kernels.to_f32(format, request.bias.data + column * bytes_of(format), columns, bias);
    }
    engine_.kernels.row_product({.rows = std::min(kRows, shape_.rows - row),
                                 .columns = columns,
                                 .depth = shape_.inner,
                                 .x = request.x + row * shape_.inner,
                                 .x_stride = shape_.inner,
                                 .weight = request.weight.row(column),
                                 .weight_format = request.weight.format,
                                 .weight_stride = request.weight.row_stride,
                                 .bias = request.bias.present() ? bias : nullptr,
                                 .y = request.y + row * shape_.columns + column,
                                 .y_stride = shape_.columns});
  }

  Engine engine_;
  ProductShape shape_;
};

}  // namespace

std::unique_ptr<Product> make_kernel_product(const Engine& engine, const ProductShape& shape) {
  return std::make_unique<KernelProduct>(engine, shape);
}

}  // namespace foldkv::backend::cpu
