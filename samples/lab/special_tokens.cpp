#include "samples/lab/special_tokens.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace foldkv_lab {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const TokenKind kind = vocabulary.kind(token);
    const std::string& text = vocabulary.text(token);
    if ((kind != TokenKind::kControl && kind != TokenKind::kUserDefined) || text.empty()) continue;
    names_[static_cast<uint8_t>(text[0])].emplace_back(text, token);
  }
  for (auto& names : names_) {
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  }
}

std::vector<SpecialTokens::Fragment> SpecialTokens::split(absl::string_view text) const {
  std::vector<Fragment> fragments;
  size_t start = 0;
  for (size_t place = 0; place < text.size();) {
    const auto* name = match(text.substr(place));
    if (name == nullptr) {
      ++place;
      continue;
    }
    if (place > start) fragments.push_back({text.substr(start, place - start), std::nullopt});
    fragments.push_back({absl::string_view(), name->second});
    place += name->first.size();
    start = place;
  }
  if (start < text.size()) fragments.push_back({text.substr(start), std::nullopt});
  return fragments;
}

const std::pair<std::string, Token>* SpecialTokens::match(absl::string_view rest) const {
  for (const auto& name : names_[static_cast<uint8_t>(rest[0])]) {
    if (absl::StartsWith(rest, name.first)) return &name;
  }
  return nullptr;
}

}  // namespace foldkv_lab
