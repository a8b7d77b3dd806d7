#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace foldkv_lab {

// How text is cut into words before the merges of a byte-level vocabulary apply, by the names of GGUF files. As
// regular expressions, tried in this order at every place:
//   kGpt2   's|'t|'re|'ve|'m|'ll|'d | ?\p{L}+ | ?\p{N}+ | ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
//   kSmollm every number character alone, then kGpt2 in each of the pieces between
//   kQwen2  (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} | ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+
//           | \s+(?!\S) | \s+
enum class PreTokenizer { kGpt2, kSmollm, kQwen2 };

[[nodiscard]] absl::StatusOr<PreTokenizer> pre_tokenizer_by_name(absl::string_view name);

// The words of a text in order; together they are the text.
[[nodiscard]] std::vector<absl::string_view> split_words(PreTokenizer pre_tokenizer, absl::string_view text);

}  // namespace foldkv_lab
