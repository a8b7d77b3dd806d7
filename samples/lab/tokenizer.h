#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace foldkv_lab {

using Token = int32_t;

// Text to numbers and back. Implementations never change after creation and may be used by many threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Tokens of a text, without begin and end tokens. Names of special tokens in the text, such as <|im_start|>, become
  // these tokens.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Token>> encode(absl::string_view text) const = 0;

  // Bytes that the token adds after `previous` (absent at the start of a text). A character may be spread over
  // several tokens. Special tokens and numbers outside the vocabulary add nothing.
  [[nodiscard]] virtual std::string piece(Token token, std::optional<Token> previous) const = 0;

  [[nodiscard]] virtual int64_t vocabulary_size() const = 0;
  // The token a text begins with, when the model expects one.
  [[nodiscard]] virtual std::optional<Token> begin_token() const = 0;
  // Whether the model says that its text ends here.
  [[nodiscard]] virtual bool ends_text(Token token) const = 0;

  [[nodiscard]] std::string decode(const std::vector<Token>& tokens) const;
  // encode, after the begin token if there is one.
  [[nodiscard]] absl::StatusOr<std::vector<Token>> encode_prompt(absl::string_view text) const;
};

}  // namespace foldkv_lab
