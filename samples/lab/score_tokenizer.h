#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/special_tokens.h"
#include "samples/lab/tokenizer.h"
#include "samples/lab/vocabulary.h"

namespace foldkv_lab {

// SentencePiece vocabularies with scores (GGUF's "llama", llama2.c): text starts as characters, and the neighbours
// whose union is the token of highest score are joined first. Characters without a token become byte tokens.
class ScoreTokenizer final : public Tokenizer {
 public:
  struct Options {
    std::string blank = " ";   // how the vocabulary writes a blank: " " (llama2.c) or U+2581 (GGUF)
    bool blank_prefix = true;  // a text is encoded as if a blank stood before it; decoding takes it away
    std::optional<Token> begin_token;
    std::optional<Token> unknown_token;
    std::vector<Token> end_tokens;
  };

  // scores: one for each token.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ScoreTokenizer>> create(Vocabulary vocabulary,
                                                                              std::vector<float> scores,
                                                                              Options options);

  [[nodiscard]] absl::StatusOr<std::vector<Token>> encode(absl::string_view text) const override;
  [[nodiscard]] std::string piece(Token token, std::optional<Token> previous) const override;
  [[nodiscard]] int64_t vocabulary_size() const override { return vocabulary_.size(); }
  [[nodiscard]] std::optional<Token> begin_token() const override { return options_.begin_token; }
  [[nodiscard]] bool ends_text(Token token) const override;

 private:
  class Rules;

  ScoreTokenizer(Vocabulary vocabulary, std::vector<float> scores, Options options);

  [[nodiscard]] absl::Status encode_fragment(const std::string& text, std::vector<Token>* tokens) const;
  [[nodiscard]] absl::Status append_bytes(absl::string_view bytes, std::vector<Token>* tokens) const;

  Vocabulary vocabulary_;
  SpecialTokens special_tokens_;
  std::vector<float> scores_;
  Options options_;
  std::array<Token, 256> byte_tokens_;  // -1: none
};

}  // namespace foldkv_lab
