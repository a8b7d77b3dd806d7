#include "samples/lab/tokenizer_from_llama2c.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/byte_reader.h"
#include "samples/lab/score_tokenizer.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/vocabulary.h"

namespace foldkv_lab {
namespace {

constexpr Token kUnknownToken = 0;
constexpr Token kBeginToken = 1;
constexpr Token kEndToken = 2;

TokenKind kind_of(Token token, absl::string_view text) {
  if (token == kUnknownToken) return TokenKind::kUnknown;
  if (token == kBeginToken || token == kEndToken) return TokenKind::kControl;
  const bool is_byte = text.size() == 6 && absl::StartsWith(text, "<0x") && absl::EndsWith(text, ">");
  return is_byte ? TokenKind::kByte : TokenKind::kNormal;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_from_llama2c(std::span<const std::byte> bytes,
                                                                  int64_t vocabulary_size) {
  constexpr uint64_t kSmallestEntry = 8;
  ByteReader reader(bytes);
  LAB_ASSIGN_OR_RETURN(const int32_t longest, reader.read<int32_t>("length of the longest token"));
  if (vocabulary_size <= kEndToken || static_cast<uint64_t>(vocabulary_size) > reader.remaining() / kSmallestEntry) {
    return absl::DataLossError(absl::StrCat("a tokenizer file of ", bytes.size(), " bytes cannot hold ",
                                            vocabulary_size, " tokens, of which 3 are special"));
  }
  std::vector<std::string> texts;
  std::vector<TokenKind> kinds;
  std::vector<float> scores;
  for (Token token = 0; token < vocabulary_size; ++token) {
    LAB_ASSIGN_OR_RETURN(const float score, reader.read<float>("score of a token"));
    LAB_ASSIGN_OR_RETURN(const int32_t length, reader.read<int32_t>("length of a token"));
    if (length < 0 || length > longest) {
      return absl::DataLossError(absl::StrCat("token ", token, " has ", length, " bytes, expected 0 to ", longest));
    }
    LAB_ASSIGN_OR_RETURN(const absl::string_view text, reader.read_text(static_cast<uint64_t>(length), "a token"));
    scores.push_back(score);
    kinds.push_back(kind_of(token, text));
    texts.emplace_back(text);
  }
  if (reader.remaining() != 0) {
    return absl::DataLossError(
        absl::StrCat("the tokenizer file has ", reader.remaining(), " bytes after its ", vocabulary_size, " tokens"));
  }
  ScoreTokenizer::Options options;
  options.begin_token = kBeginToken;
  options.unknown_token = kUnknownToken;
  // A new story begins with the begin token: it ends the text as well.
  options.end_tokens = {kBeginToken, kEndToken};
  LAB_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::create(std::move(texts), std::move(kinds)));
  return ScoreTokenizer::create(std::move(vocabulary), std::move(scores), std::move(options));
}

}  // namespace foldkv_lab
