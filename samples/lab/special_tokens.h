#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "samples/lab/vocabulary.h"

namespace foldkv_lab {

// Finds the names of control and user-defined tokens in a text.
class SpecialTokens {
 public:
  struct Fragment {
    absl::string_view text;      // between special tokens; empty for a special token
    std::optional<Token> token;  // the special token
  };

  explicit SpecialTokens(const Vocabulary& vocabulary);

  // The fragments of the text in order. At each place the longest name wins.
  [[nodiscard]] std::vector<Fragment> split(absl::string_view text) const;

 private:
  [[nodiscard]] const std::pair<std::string, Token>* match(absl::string_view rest) const;

  // By first byte, longest names first.
  std::vector<std::pair<std::string, Token>> names_[256];
};

}  // namespace foldkv_lab
