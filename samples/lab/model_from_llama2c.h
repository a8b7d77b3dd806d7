#pragma once

#include "absl/status/statusor.h"
#include "samples/lab/llama2c_file.h"
#include "samples/lab/model.h"

namespace foldkv_lab {

[[nodiscard]] absl::StatusOr<Model> model_from_llama2c(const Llama2cFile& file);

}  // namespace foldkv_lab
