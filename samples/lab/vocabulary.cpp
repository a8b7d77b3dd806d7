#include "samples/lab/vocabulary.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace foldkv_lab {

absl::StatusOr<Vocabulary> Vocabulary::create(std::vector<std::string> texts, std::vector<TokenKind> kinds) {
  constexpr size_t kLargest = size_t{1} << 24;
  if (texts.empty() || texts.size() > kLargest) {
    return absl::DataLossError(absl::StrCat("a vocabulary of ", texts.size(), " tokens, expected 1 to ", kLargest));
  }
  if (kinds.size() != texts.size()) {
    return absl::DataLossError(absl::StrCat(kinds.size(), " token kinds for ", texts.size(), " tokens"));
  }
  Vocabulary vocabulary;
  vocabulary.tokens_.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) vocabulary.tokens_.emplace(texts[i], static_cast<Token>(i));
  vocabulary.texts_ = std::move(texts);
  vocabulary.kinds_ = std::move(kinds);
  return vocabulary;
}

Token Vocabulary::find(absl::string_view text) const {
  const auto found = tokens_.find(text);
  return found == tokens_.end() ? -1 : found->second;
}

}  // namespace foldkv_lab
