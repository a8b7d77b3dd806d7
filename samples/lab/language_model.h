#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "samples/lab/model.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

struct LanguageModel {
  std::string name;  // names the weights: file name and hash of its content
  Model model;
  std::unique_ptr<Tokenizer> tokenizer;
};

// Loads a GGUF or llama2.c file; the first bytes say which. llama2.c keeps its tokenizer in a file of its own, which
// is looked for beside the model (tok<vocabulary size>.bin, tokenizer.bin) when tokenizer_path is empty.
[[nodiscard]] absl::StatusOr<LanguageModel> load_language_model(const std::string& path,
                                                                const std::string& tokenizer_path);

}  // namespace foldkv_lab
