#include <algorithm>

#include "backends/cpu/products.h"
#include "runtime/base/checked.h"

namespace foldkv::backend::cpu {
namespace {

// Row by row of the weights, each read once for all rows of x: bound by memory, right for few rows.
class DotProduct final : public Product {
 public:
  DotProduct(const Engine& engine, const ProductShape& shape) : engine_(engine), shape_(shape) {}

  [[nodiscard]] int64_t workspace_bytes() const override { return 0; }

  [[nodiscard]] Status run(const ProductRequest& request) override {
    engine_.threads.run(
        divide_up(shape_.columns, kColumns), [&](int64_t unit, int) { run_tile(request, unit * kColumns); },
        2 * shape_.rows * shape_.inner * shape_.columns);
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kColumns = 64;

  void run_tile(const ProductRequest& request, int64_t column) const {
    const int64_t columns = std::min(kColumns, shape_.columns - column);
    float bias[kColumns];
    if (request.bias.present()) {
      const NumberFormat format = request.bias.format;
      engine_.kernels.to_f32(format, request.bias.data + column * bytes_of(format), columns, bias);
    }
    engine_.kernels.row_product({.rows = shape_.rows,
                                 .columns = columns,
                                 .depth = shape_.inner,
                                 .x = request.x,
                                 .x_stride = shape_.inner,
                                 .weight = request.weight.row(column),
                                 .weight_format = request.weight.format,
                                 .weight_stride = request.weight.row_stride,
                                 .bias = request.bias.present() ? bias : nullptr,
                                 .y = request.y + column,
                                 .y_stride = shape_.columns});
  }

  Engine engine_;
  ProductShape shape_;
};

}  // namespace

std::unique_ptr<Product> make_dot_product(const Engine& engine, const ProductShape& shape) {
  return std::make_unique<DotProduct>(engine, shape);
}

}  // namespace foldkv::backend::cpu
