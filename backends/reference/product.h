#pragma once

#include <memory>

#include "backends/interface/backend.h"

namespace foldkv::backend::reference {

[[nodiscard]] StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape);

}  // namespace foldkv::backend::reference
