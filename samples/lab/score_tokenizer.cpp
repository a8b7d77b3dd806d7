#include "samples/lab/score_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "samples/lab/merge_queue.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/unicode.h"

namespace foldkv_lab {

// Symbols are adjacent parts of one text, so that their union is a part of it too.
class ScoreTokenizer::Rules {
 public:
  using Priority = float;

  Rules(const Vocabulary& vocabulary, const std::vector<float>& scores) : vocabulary_(vocabulary), scores_(scores) {}

  [[nodiscard]] std::optional<Priority> may_join(absl::string_view left, absl::string_view right) const {
    const Token token = vocabulary_.find(join(left, right));
    if (token < 0 || vocabulary_.kind(token) == TokenKind::kControl) return std::nullopt;
    return scores_[static_cast<size_t>(token)];
  }
  [[nodiscard]] absl::string_view join(absl::string_view left, absl::string_view right) const {
    return {left.data(), left.size() + right.size()};
  }

 private:
  const Vocabulary& vocabulary_;
  const std::vector<float>& scores_;
};

ScoreTokenizer::ScoreTokenizer(Vocabulary vocabulary, std::vector<float> scores, Options options)
    : vocabulary_(std::move(vocabulary)),
      special_tokens_(vocabulary_),
      scores_(std::move(scores)),
      options_(std::move(options)) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[static_cast<size_t>(byte)] = vocabulary_.find(absl::StrFormat("<0x%02X>", byte));
  }
}

absl::StatusOr<std::unique_ptr<ScoreTokenizer>> ScoreTokenizer::create(Vocabulary vocabulary, std::vector<float> scores,
                                                                       Options options) {
  if (static_cast<int64_t>(scores.size()) != vocabulary.size()) {
    return absl::DataLossError(absl::StrCat(scores.size(), " scores for ", vocabulary.size(), " tokens"));
  }
  // NaN has no place in an order.
  if (std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); })) {
    return absl::DataLossError("a score of the vocabulary is not a number");
  }
  return absl::WrapUnique(new ScoreTokenizer(std::move(vocabulary), std::move(scores), std::move(options)));
}

absl::StatusOr<std::vector<Token>> ScoreTokenizer::encode(absl::string_view text) const {
  std::vector<Token> tokens;
  bool at_start = true;  // the prefix stands at the start and after special tokens
  for (const SpecialTokens::Fragment& fragment : special_tokens_.split(text)) {
    if (fragment.token.has_value()) {
      tokens.push_back(*fragment.token);
      at_start = true;
      continue;
    }
    const std::string prefix = at_start && options_.blank_prefix ? " " : "";
    const std::string spelled = absl::StrReplaceAll(prefix + std::string(fragment.text), {{" ", options_.blank}});
    LAB_RETURN_IF_ERROR(encode_fragment(spelled, &tokens));
    at_start = false;
  }
  return tokens;
}

absl::Status ScoreTokenizer::encode_fragment(const std::string& text, std::vector<Token>* tokens) const {
  std::vector<absl::string_view> symbols;
  for (uint64_t place = 0; place < text.size();) {
    const uint32_t length = character_at(text, place).length;
    symbols.push_back(absl::string_view(text).substr(place, length));
    place += length;
  }
  const Rules rules(vocabulary_, scores_);
  for (const absl::string_view symbol : MergeQueue<absl::string_view, Rules>(std::move(symbols), rules).run()) {
    const Token token = vocabulary_.find(symbol);
    if (token >= 0) {
      tokens->push_back(token);
    } else {
      LAB_RETURN_IF_ERROR(append_bytes(symbol, tokens));
    }
  }
  return absl::OkStatus();
}

absl::Status ScoreTokenizer::append_bytes(absl::string_view bytes, std::vector<Token>* tokens) const {
  for (const char character : bytes) {
    const uint8_t byte = static_cast<uint8_t>(character);
    if (byte_tokens_[byte] >= 0) {
      tokens->push_back(byte_tokens_[byte]);
    } else if (options_.unknown_token.has_value()) {
      tokens->push_back(*options_.unknown_token);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("the vocabulary has no token for byte ", static_cast<int>(byte)));
    }
  }
  return absl::OkStatus();
}

std::string ScoreTokenizer::piece(Token token, std::optional<Token> previous) const {
  if (!vocabulary_.contains(token)) return "";
  const TokenKind kind = vocabulary_.kind(token);
  if (kind == TokenKind::kControl || kind == TokenKind::kUnknown || kind == TokenKind::kUnused) return "";
  const std::string& text = vocabulary_.text(token);
  for (size_t byte = 0; kind == TokenKind::kByte && byte < byte_tokens_.size(); ++byte) {
    if (byte_tokens_[byte] == token) return std::string(1, static_cast<char>(byte));
  }
  if (kind == TokenKind::kUserDefined) return text;
  std::string bytes = absl::StrReplaceAll(text, {{options_.blank, " "}});
  const bool at_start =
      !previous.has_value() || (vocabulary_.contains(*previous) && vocabulary_.kind(*previous) == TokenKind::kControl);
  if (at_start && options_.blank_prefix && absl::StartsWith(bytes, " ")) bytes.erase(0, 1);
  return bytes;
}

bool ScoreTokenizer::ends_text(Token token) const {
  return std::find(options_.end_tokens.begin(), options_.end_tokens.end(), token) != options_.end_tokens.end();
}

}  // namespace foldkv_lab
