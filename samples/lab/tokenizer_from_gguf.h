#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// The tokenizer inside a GGUF file: byte-pair ("gpt2") or scored ("llama").
[[nodiscard]] absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_from_gguf(const GgufFile& file);

}  // namespace foldkv_lab
