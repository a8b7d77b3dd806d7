#include "samples/lab/byte_pair_tokenizer.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/byte_alphabet.h"
#include "samples/lab/merge_queue.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/unicode.h"

namespace foldkv_lab {

class BytePairTokenizer::Rules {
 public:
  using Priority = int32_t;  // minus the rank

  explicit Rules(const absl::flat_hash_map<std::pair<Token, Token>, Rule>& rules) : rules_(rules) {}

  [[nodiscard]] std::optional<Priority> may_join(Token left, Token right) const {
    const auto found = rules_.find({left, right});
    if (found == rules_.end()) return std::nullopt;
    return -found->second.rank;
  }
  [[nodiscard]] Token join(Token left, Token right) const { return rules_.find({left, right})->second.joined; }

 private:
  const absl::flat_hash_map<std::pair<Token, Token>, Rule>& rules_;
};

BytePairTokenizer::BytePairTokenizer(Vocabulary vocabulary, Options options)
    : vocabulary_(std::move(vocabulary)), special_tokens_(vocabulary_), options_(std::move(options)) {
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] = vocabulary_.find(character_of_byte(static_cast<uint8_t>(byte)));
  }
}

absl::StatusOr<std::unique_ptr<BytePairTokenizer>> BytePairTokenizer::create(Vocabulary vocabulary,
                                                                             const std::vector<Merge>& merges,
                                                                             Options options) {
  auto tokenizer = absl::WrapUnique(new BytePairTokenizer(std::move(vocabulary), std::move(options)));
  LAB_RETURN_IF_ERROR(tokenizer->add_merges(merges));
  return tokenizer;
}

absl::Status BytePairTokenizer::add_merges(const std::vector<Merge>& merges) {
  rules_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const Token left = vocabulary_.find(merges[i].left);
    const Token right = vocabulary_.find(merges[i].right);
    const Token joined = vocabulary_.find(merges[i].left + merges[i].right);
    if (left < 0 || right < 0 || joined < 0) {
      return absl::DataLossError(absl::StrCat("merge ", i, " joins \"", merges[i].left, "\" and \"", merges[i].right,
                                              "\", which with their result are not all tokens"));
    }
    rules_.emplace(std::make_pair(left, right), Rule{static_cast<int32_t>(i), joined});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Token>> BytePairTokenizer::encode(absl::string_view text) const {
  std::vector<Token> tokens;
  for (const SpecialTokens::Fragment& fragment : special_tokens_.split(text)) {
    if (fragment.token.has_value()) {
      tokens.push_back(*fragment.token);
      continue;
    }
    for (const absl::string_view word : split_words(options_.pre_tokenizer, fragment.text)) {
      LAB_RETURN_IF_ERROR(encode_word(word, &tokens));
    }
  }
  return tokens;
}

bool BytePairTokenizer::append_byte_tokens(absl::string_view bytes, std::vector<Token>* tokens) const {
  const size_t start = tokens->size();
  for (const char character : bytes) {
    const Token token = byte_tokens_[static_cast<uint8_t>(character)];
    if (token < 0) {
      tokens->resize(start);
      return false;
    }
    tokens->push_back(token);
  }
  return true;
}

// Vocabularies lack bytes that their training text did not have, those that no UTF-8 text has above all. A character
// that needs one is read as the replacement character, as readers of text files do with bytes they cannot read.
absl::Status BytePairTokenizer::encode_word(absl::string_view word, std::vector<Token>* tokens) const {
  constexpr absl::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
  std::vector<Token> symbols;
  symbols.reserve(word.size());
  for (uint64_t place = 0; place < word.size();) {
    const uint32_t length = character_at(word, place).length;
    const absl::string_view character = word.substr(place, length);
    if (!append_byte_tokens(character, &symbols) && !append_byte_tokens(kReplacement, &symbols)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the vocabulary has neither the bytes of \"", absl::CHexEscape(character), "\" nor U+FFFD"));
    }
    place += length;
  }
  const Rules rules(rules_);
  for (const Token token : MergeQueue<Token, Rules>(std::move(symbols), rules).run()) tokens->push_back(token);
  return absl::OkStatus();
}

std::string BytePairTokenizer::piece(Token token, std::optional<Token> /*previous*/) const {
  if (!vocabulary_.contains(token)) return "";
  const std::string& text = vocabulary_.text(token);
  switch (vocabulary_.kind(token)) {
    case TokenKind::kControl:
    case TokenKind::kUnknown:
    case TokenKind::kUnused: return "";
    case TokenKind::kUserDefined: return text;
    case TokenKind::kNormal:
    case TokenKind::kByte: break;
  }
  std::string bytes;
  for (uint64_t place = 0; place < text.size();) {
    const Character character = character_at(text, place);
    if (const std::optional<uint8_t> byte = byte_of_character(character.code)) {
      bytes.push_back(static_cast<char>(*byte));
    } else {  // no byte's character: written as it is
      bytes.append(text, place, character.length);
    }
    place += character.length;
  }
  return bytes;
}

bool BytePairTokenizer::ends_text(Token token) const {
  return std::find(options_.end_tokens.begin(), options_.end_tokens.end(), token) != options_.end_tokens.end();
}

}  // namespace foldkv_lab
