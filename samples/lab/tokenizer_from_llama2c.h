#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// A tokenizer file of llama2.c: the longest token's length, then for each token a score, a length and its bytes. The
// file does not say how many tokens it has: that comes from the model. The input counts as hostile.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_from_llama2c(std::span<const std::byte> bytes,
                                                                                int64_t vocabulary_size);

}  // namespace foldkv_lab
