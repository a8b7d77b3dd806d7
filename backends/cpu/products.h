#pragma once

#include <memory>

#include "backends/cpu/engine.h"
#include "backends/interface/backend.h"

namespace foldkv::backend::cpu {

// Our own kernels: any weight format; a row's result does not depend on the number of rows.
[[nodiscard]] std::unique_ptr<Product> make_kernel_product(const Engine& engine, const ProductShape& shape);

// oneDNN, for f32 weights. Null when it has nothing for the shape.
[[nodiscard]] std::unique_ptr<Product> make_onednn_product(const Engine& engine, const ProductShape& shape);

}  // namespace foldkv::backend::cpu
