#include "backends/cpu/products.h"

namespace foldkv::backend::cpu {
namespace {

// Fewer rows are bound by reading the weights once; more of them pay for transposing the weights.
constexpr int64_t kFewRows = 8;

}  // namespace

std::unique_ptr<Product> make_product(const Engine& engine, const ProductShape& shape) {
  if (!shape.deterministic) {
    if (shape.rows < kFewRows) return make_dot_product(engine, shape);
#if FOLDKV_WITH_ONEDNN
    if (shape.weight_format == NumberFormat::kF32) {
      if (std::unique_ptr<Product> product = make_onednn_product(engine, shape)) return product;
    }
#endif
  }
  return make_packed_product(engine, shape);
}

}  // namespace foldkv::backend::cpu
