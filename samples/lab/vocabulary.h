#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

enum class TokenKind : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// Tokens by number and by text. Owns its texts.
class Vocabulary {
 public:
  // kinds: one for each text. Texts may repeat; then the first one is found by text.
  [[nodiscard]] static absl::StatusOr<Vocabulary> create(std::vector<std::string> texts, std::vector<TokenKind> kinds);

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  [[nodiscard]] bool contains(Token token) const { return token >= 0 && token < size(); }
  // The token must be contained.
  [[nodiscard]] const std::string& text(Token token) const { return texts_[static_cast<size_t>(token)]; }
  [[nodiscard]] TokenKind kind(Token token) const { return kinds_[static_cast<size_t>(token)]; }
  // -1 when there is none.
  [[nodiscard]] Token find(absl::string_view text) const;

 private:
  Vocabulary() = default;

  std::vector<std::string> texts_;
  std::vector<TokenKind> kinds_;
  absl::flat_hash_map<std::string, Token> tokens_;
};

}  // namespace foldkv_lab
