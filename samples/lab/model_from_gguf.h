#pragma once

#include "absl/status/statusor.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/model.h"

namespace foldkv_lab {

// Builds a model of architecture llama or qwen2. The shape of every tensor is compared with the metadata, and a
// tensor that the architecture does not use is refused, since leaving it out would compute something else.
[[nodiscard]] absl::StatusOr<Model> model_from_gguf(const GgufFile& file);

}  // namespace foldkv_lab
