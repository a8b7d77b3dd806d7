#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "samples/lab/tokenizer.h"
#include "samples/lab/uniform_random.h"

namespace foldkv_lab {

// A stretch of text with what separates it from the next one, a sentence as a rule. A text's passages one after the
// other are the text.
struct Passage {
  std::string text;
  int64_t tokens = 0;  // when it is encoded alone
};

// Cuts after the ends of sentences and paragraphs; long runs of lines without any (code, tables) after a line.
[[nodiscard]] std::vector<std::string> split_passages(absl::string_view text);

// Texts to hide things in.
class Haystack {
 public:
  // An error when a file cannot be read.
  [[nodiscard]] static absl::StatusOr<Haystack> load(const std::vector<std::string>& paths, const Tokenizer& tokenizer);
  [[nodiscard]] static absl::StatusOr<Haystack> create(const std::vector<std::string>& texts,
                                                       const Tokenizer& tokenizer);

  // Passages that follow each other in one of the texts, from a random place on: as many as fit `tokens`. Of several
  // texts that are long enough each is as likely. An error when none is, or when passages are about as long.
  [[nodiscard]] absl::StatusOr<std::vector<Passage>> draw_run(int64_t tokens, UniformRandom& random) const;
  // A sentence of `words` words or more in plain prose, in one line. An error when there is none.
  [[nodiscard]] absl::StatusOr<std::string> draw_sentence(int64_t words, UniformRandom& random) const;

 private:
  std::vector<std::vector<Passage>> texts_;
};

}  // namespace foldkv_lab
