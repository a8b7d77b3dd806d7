#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

struct TextSample {
  std::string source;  // the file it comes from
  std::vector<Token> tokens;
};

// Cuts texts into adjacent samples of `length` tokens; the rest of a text that fills no sample is left out. When there
// are more than `maximum`, samples are taken in turn from each text and evenly from all of it, so that no text and no
// beginning of a text is favoured. A begin token, when the model has one, stands first in each sample.
// An error when a file cannot be read or when no text fills a sample.
[[nodiscard]] absl::StatusOr<std::vector<TextSample>> sample_texts(const std::vector<std::string>& paths,
                                                                   const Tokenizer& tokenizer, int64_t length,
                                                                   int64_t maximum);

}  // namespace foldkv_lab
