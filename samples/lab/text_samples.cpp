#include "samples/lab/text_samples.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

std::vector<TextSample> cut(const std::string& path, const std::vector<Token>& tokens, int64_t length,
                            std::optional<Token> begin_token) {
  const int64_t taken = begin_token.has_value() ? length - 1 : length;
  std::vector<TextSample> samples;
  for (int64_t start = 0; start + taken <= static_cast<int64_t>(tokens.size()); start += taken) {
    TextSample sample{path, {}};
    if (begin_token.has_value()) sample.tokens.push_back(*begin_token);
    sample.tokens.insert(sample.tokens.end(), tokens.begin() + start, tokens.begin() + start + taken);
    samples.push_back(std::move(sample));
  }
  return samples;
}

// How many of each text's samples are taken: one from each text in turn, as long as it has any.
std::vector<int64_t> share_out(const std::vector<std::vector<TextSample>>& texts, int64_t maximum) {
  std::vector<int64_t> shares(texts.size(), 0);
  int64_t left = maximum;
  for (bool progress = true; progress && left > 0;) {
    progress = false;
    for (size_t i = 0; i < texts.size() && left > 0; ++i) {
      if (shares[i] == static_cast<int64_t>(texts[i].size())) continue;
      ++shares[i];
      --left;
      progress = true;
    }
  }
  return shares;
}

}  // namespace

absl::StatusOr<std::vector<TextSample>> sample_texts(const std::vector<std::string>& paths, const Tokenizer& tokenizer,
                                                     int64_t length, int64_t maximum) {
  if (length < 2 || maximum < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("samples of ", length, " tokens, at most ", maximum, "; expected at least 2 tokens and 1 sample"));
  }
  std::vector<std::vector<TextSample>> texts;
  for (const std::string& path : paths) {
    LAB_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
    LAB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, tokenizer.encode(text));
    texts.push_back(cut(path, tokens, length, tokenizer.begin_token()));
  }
  const std::vector<int64_t> shares = share_out(texts, maximum);
  std::vector<TextSample> samples;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t available = static_cast<int64_t>(texts[i].size());
    for (int64_t j = 0; j < shares[i]; ++j) {  // the middles of equal parts
      samples.push_back(std::move(texts[i][static_cast<size_t>((2 * j + 1) * available / (2 * shares[i]))]));
    }
  }
  if (samples.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no text holds ", length, " tokens: there is nothing to run"));
  }
  return samples;
}

}  // namespace foldkv_lab
