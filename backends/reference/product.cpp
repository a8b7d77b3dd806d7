#include "backends/reference/product.h"

#include "backends/reference/numbers.h"
#include "backends/reference/scratch.h"

namespace foldkv::backend::reference {
namespace {

class ScalarProduct final : public Product {
 public:
  explicit ScalarProduct(const ProductShape& shape) : shape_(shape) {}

  [[nodiscard]] int64_t workspace_bytes() const override {
    Scratch scratch(nullptr);
    (void)scratch.take<double>(shape_.inner);
    return scratch.used();
  }

  // Weights are read once, whatever the number of rows.
  [[nodiscard]] Status run(const ProductRequest& request) override {
    double* const weights = Scratch(request.workspace).take<double>(shape_.inner);
    for (int64_t column = 0; column < shape_.columns; ++column) {
      read_numbers(shape_.weight_format, request.weight.row(column), shape_.inner, weights);
      const double bias = !request.bias.present()
                              ? 0.0
                              : static_cast<double>(number_at(request.bias.format, request.bias.data, column));
      for (int64_t row = 0; row < shape_.rows; ++row) {
        const double sum = dot(request.x + row * shape_.inner, weights, shape_.inner) + bias;
        request.y[row * shape_.columns + column] = static_cast<float>(sum);
      }
    }
    return absl::OkStatus();
  }

 private:
  ProductShape shape_;
};

}  // namespace

StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape) {
  if (shape.rows <= 0 || shape.inner <= 0 || shape.columns <= 0) {
    return argument_error(
        "shape", absl::StrCat("is ", shape.rows, " x ", shape.inner, " x ", shape.columns, ", expected sizes above 0"));
  }
  return std::make_unique<ScalarProduct>(shape);
}

}  // namespace foldkv::backend::reference
