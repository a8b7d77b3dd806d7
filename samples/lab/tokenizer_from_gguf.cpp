#include "samples/lab/tokenizer_from_gguf.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "samples/lab/byte_pair_tokenizer.h"
#include "samples/lab/score_tokenizer.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/vocabulary.h"

namespace foldkv_lab {
namespace {

absl::StatusOr<std::vector<TokenKind>> read_kinds(const GgufFile& file, size_t count) {
  if (!file.has("tokenizer.ggml.token_type")) return std::vector<TokenKind>(count, TokenKind::kNormal);
  LAB_ASSIGN_OR_RETURN(const std::span<const int64_t> codes, file.signed_numbers("tokenizer.ggml.token_type"));
  static constexpr TokenKind kKinds[] = {TokenKind::kNormal,      TokenKind::kUnknown, TokenKind::kControl,
                                         TokenKind::kUserDefined, TokenKind::kUnused,  TokenKind::kByte};
  std::vector<TokenKind> kinds;
  for (const int64_t code : codes) {
    if (code < 1 || code > 6) return absl::DataLossError(absl::StrCat("token type ", code, ", expected 1 to 6"));
    kinds.push_back(kKinds[code - 1]);
  }
  return kinds;
}

absl::StatusOr<Vocabulary> read_vocabulary(const GgufFile& file) {
  LAB_ASSIGN_OR_RETURN(const std::span<const absl::string_view> texts, file.texts("tokenizer.ggml.tokens"));
  LAB_ASSIGN_OR_RETURN(std::vector<TokenKind> kinds, read_kinds(file, texts.size()));
  return Vocabulary::create(std::vector<std::string>(texts.begin(), texts.end()), std::move(kinds));
}

// A token named in the metadata; absent when the key is.
absl::StatusOr<std::optional<Token>> read_token(const GgufFile& file, absl::string_view key,
                                                const Vocabulary& vocabulary) {
  if (!file.has(key)) return std::optional<Token>();
  LAB_ASSIGN_OR_RETURN(const uint64_t token, file.unsigned_number(key));
  if (token >= static_cast<uint64_t>(vocabulary.size())) {
    return absl::DataLossError(absl::StrCat(key, " is ", token, ", the vocabulary has ", vocabulary.size()));
  }
  return std::optional<Token>(static_cast<Token>(token));
}

absl::StatusOr<std::optional<Token>> read_begin_token(const GgufFile& file, const Vocabulary& vocabulary,
                                                      bool wanted_by_default) {
  LAB_ASSIGN_OR_RETURN(const bool wanted, file.truth_or("tokenizer.ggml.add_bos_token", wanted_by_default));
  if (!wanted) return std::optional<Token>();
  return read_token(file, "tokenizer.ggml.bos_token_id", vocabulary);
}

// The end tokens that the metadata name, and the control tokens that end turns and texts by convention: files of
// chat models often name only one of them.
absl::StatusOr<std::vector<Token>> read_end_tokens(const GgufFile& file, const Vocabulary& vocabulary) {
  std::vector<Token> tokens;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    LAB_ASSIGN_OR_RETURN(const std::optional<Token> token, read_token(file, key, vocabulary));
    if (token.has_value()) tokens.push_back(*token);
  }
  for (const char* name : {"<|im_end|>", "<|endoftext|>", "</s>"}) {
    const Token token = vocabulary.find(name);
    if (token >= 0 && vocabulary.kind(token) == TokenKind::kControl) tokens.push_back(token);
  }
  return tokens;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> read_byte_pair(const GgufFile& file, Vocabulary vocabulary) {
  BytePairTokenizer::Options options;
  LAB_ASSIGN_OR_RETURN(const absl::string_view pre, file.text_or("tokenizer.ggml.pre", "default"));
  LAB_ASSIGN_OR_RETURN(options.pre_tokenizer, pre_tokenizer_by_name(pre));
  LAB_ASSIGN_OR_RETURN(options.begin_token, read_begin_token(file, vocabulary, false));
  LAB_ASSIGN_OR_RETURN(options.end_tokens, read_end_tokens(file, vocabulary));
  LAB_ASSIGN_OR_RETURN(const std::span<const absl::string_view> lines, file.texts("tokenizer.ggml.merges"));
  std::vector<BytePairTokenizer::Merge> merges;
  for (const absl::string_view line : lines) {
    // Tokens hold no blank, since byte-level vocabularies write it as another character.
    const size_t blank = line.find(' ');
    if (blank == absl::string_view::npos) {
      return absl::DataLossError(absl::StrCat("merge \"", line, "\" has no blank between two tokens"));
    }
    merges.push_back({std::string(line.substr(0, blank)), std::string(line.substr(blank + 1))});
  }
  return BytePairTokenizer::create(std::move(vocabulary), merges, std::move(options));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> read_scored(const GgufFile& file, Vocabulary vocabulary) {
  ScoreTokenizer::Options options;
  options.blank = "\xe2\x96\x81";  // U+2581, lower one eighth block
  LAB_ASSIGN_OR_RETURN(options.blank_prefix, file.truth_or("tokenizer.ggml.add_space_prefix", true));
  LAB_ASSIGN_OR_RETURN(options.begin_token, read_begin_token(file, vocabulary, true));
  LAB_ASSIGN_OR_RETURN(options.unknown_token, read_token(file, "tokenizer.ggml.unknown_token_id", vocabulary));
  LAB_ASSIGN_OR_RETURN(options.end_tokens, read_end_tokens(file, vocabulary));
  LAB_ASSIGN_OR_RETURN(const std::span<const double> scores, file.real_numbers("tokenizer.ggml.scores"));
  std::vector<float> narrow_scores;
  for (const double score : scores) narrow_scores.push_back(static_cast<float>(score));
  return ScoreTokenizer::create(std::move(vocabulary), std::move(narrow_scores), std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_from_gguf(const GgufFile& file) {
  LAB_ASSIGN_OR_RETURN(const absl::string_view kind, file.text("tokenizer.ggml.model"));
  if (kind != "gpt2" && kind != "llama") {
    return absl::UnimplementedError(absl::StrCat("tokenizer \"", kind, "\", expected gpt2 or llama"));
  }
  LAB_ASSIGN_OR_RETURN(Vocabulary vocabulary, read_vocabulary(file));
  if (kind == "gpt2") return read_byte_pair(file, std::move(vocabulary));
  return read_scored(file, std::move(vocabulary));
}

}  // namespace foldkv_lab
