#pragma once

#include <memory>

#include "backends/cpu/engine.h"
#include "backends/interface/backend.h"

namespace foldkv::backend::cpu {

// The right product for a shape. With `deterministic`, in which a row's result does not depend on the number of rows,
// it is always the packed one.
[[nodiscard]] std::unique_ptr<Product> make_product(const Engine& engine, const ProductShape& shape);

// Our own kernels, for any weight format.
[[nodiscard]] std::unique_ptr<Product> make_dot_product(const Engine& engine, const ProductShape& shape);
[[nodiscard]] std::unique_ptr<Product> make_packed_product(const Engine& engine, const ProductShape& shape);
// oneDNN, for f32 weights. Null when it has nothing for the shape.
[[nodiscard]] std::unique_ptr<Product> make_onednn_product(const Engine& engine, const ProductShape& shape);

}  // namespace foldkv::backend::cpu
