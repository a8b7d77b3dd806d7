#include "samples/lab/tokenizer.h"

#include "samples/lab/status_macros.h"

namespace foldkv_lab {

std::string Tokenizer::decode(const std::vector<Token>& tokens) const {
  std::string text;
  std::optional<Token> previous;
  for (const Token token : tokens) {
    text += piece(token, previous);
    previous = token;
  }
  return text;
}

absl::StatusOr<std::vector<Token>> Tokenizer::encode_prompt(absl::string_view text) const {
  LAB_ASSIGN_OR_RETURN(std::vector<Token> tokens, encode(text));
  if (const std::optional<Token> begin = begin_token()) tokens.insert(tokens.begin(), *begin);
  return tokens;
}

}  // namespace foldkv_lab
