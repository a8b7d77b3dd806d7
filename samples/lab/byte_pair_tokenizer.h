#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "samples/lab/pre_tokenizer.h"
#include "samples/lab/special_tokens.h"
#include "samples/lab/tokenizer.h"
#include "samples/lab/vocabulary.h"

namespace foldkv_lab {

// Byte-level byte-pair encoding (GGUF's "gpt2"): text is cut into words, each byte of a word is a printable character
// of the vocabulary, and neighbours are joined in the order of the merges.
class BytePairTokenizer final : public Tokenizer {
 public:
  struct Merge {
    std::string left;
    std::string right;
  };
  struct Options {
    PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;
    std::optional<Token> begin_token;
    std::vector<Token> end_tokens;
  };

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<BytePairTokenizer>> create(Vocabulary vocabulary,
                                                                                 const std::vector<Merge>& merges,
                                                                                 Options options);

  [[nodiscard]] absl::StatusOr<std::vector<Token>> encode(absl::string_view text) const override;
  [[nodiscard]] std::string piece(Token token, std::optional<Token> previous) const override;
  [[nodiscard]] int64_t vocabulary_size() const override { return vocabulary_.size(); }
  [[nodiscard]] std::optional<Token> begin_token() const override { return options_.begin_token; }
  [[nodiscard]] bool ends_text(Token token) const override;

 private:
  struct Rule {
    int32_t rank;
    Token joined;
  };
  class Rules;

  BytePairTokenizer(Vocabulary vocabulary, Options options);

  [[nodiscard]] absl::Status add_merges(const std::vector<Merge>& merges);
  // Tokens of single bytes; false, and nothing appended, when the vocabulary lacks one of them.
  [[nodiscard]] bool append_byte_tokens(absl::string_view bytes, std::vector<Token>* tokens) const;
  [[nodiscard]] absl::Status encode_word(absl::string_view word, std::vector<Token>* tokens) const;

  Vocabulary vocabulary_;
  SpecialTokens special_tokens_;
  Options options_;
  std::array<Token, 256> byte_tokens_;  // -1: the vocabulary has no token for this byte
  absl::flat_hash_map<std::pair<Token, Token>, Rule> rules_;
};

}  // namespace foldkv_lab
