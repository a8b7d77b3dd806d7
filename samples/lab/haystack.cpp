#include "samples/lab/haystack.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr size_t kLongPassage = 240;  // bytes after which the end of a line ends a passage too

// Whether the passage from `start` ends at `place`, with the white space there, behind which `end` stands.
bool ends_passage(absl::string_view text, size_t start, size_t place, size_t* end) {
  if (!absl::ascii_isspace(static_cast<unsigned char>(text[place]))) return false;
  *end = place;
  while (*end < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[*end]))) ++*end;
  const absl::string_view gap = text.substr(place, *end - place);
  if (std::count(gap.begin(), gap.end(), '\n') > 1) return true;
  if (absl::string_view(".?!").find(text[place - 1]) != absl::string_view::npos) return true;
  return place - start > kLongPassage && absl::StrContains(gap, "\n");
}

// Only letters and the marks of prose, so that neither code nor headings are asked for.
bool is_prose(absl::string_view sentence) {
  return absl::ascii_isupper(static_cast<unsigned char>(sentence[0])) && sentence.back() == '.' &&
         std::all_of(sentence.begin(), sentence.end(), [](char character) {
           return absl::ascii_isalpha(static_cast<unsigned char>(character)) ||
                  absl::string_view(" ,;:.'-").find(character) != absl::string_view::npos;
         });
}

int64_t count_tokens(const std::vector<Passage>& passages) {
  int64_t tokens = 0;
  for (const Passage& passage : passages) tokens += passage.tokens;
  return tokens;
}

// Passages that a run of `tokens` may begin with: the same number of tokens must follow.
size_t count_starts(const std::vector<Passage>& passages, int64_t tokens) {
  int64_t left = count_tokens(passages);
  size_t starts = 0;
  while (starts < passages.size() && left >= tokens) left -= passages[starts++].tokens;
  return starts;
}

}  // namespace

std::vector<std::string> split_passages(absl::string_view text) {
  std::vector<std::string> passages;
  size_t start = 0;
  for (size_t place = 1; place < text.size(); ++place) {
    size_t end = 0;
    if (!ends_passage(text, start, place, &end)) continue;
    passages.emplace_back(text.substr(start, end - start));
    start = end;
    place = end;
  }
  if (start < text.size()) passages.emplace_back(text.substr(start));
  return passages;
}

absl::StatusOr<Haystack> Haystack::load(const std::vector<std::string>& paths, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (const std::string& path : paths) {
    LAB_ASSIGN_OR_RETURN(std::string text, read_text_file(path));
    texts.push_back(std::move(text));
  }
  return create(texts, tokenizer);
}

absl::StatusOr<Haystack> Haystack::create(const std::vector<std::string>& texts, const Tokenizer& tokenizer) {
  Haystack haystack;
  for (const std::string& text : texts) {
    std::vector<Passage>& passages = haystack.texts_.emplace_back();
    for (std::string& passage : split_passages(text)) {
      LAB_ASSIGN_OR_RETURN(const std::vector<Token> tokens, tokenizer.encode(passage));
      passages.push_back({std::move(passage), static_cast<int64_t>(tokens.size())});
    }
  }
  return haystack;
}

absl::StatusOr<std::vector<Passage>> Haystack::draw_run(int64_t tokens, UniformRandom& random) const {
  std::vector<const std::vector<Passage>*> long_enough;
  for (const std::vector<Passage>& passages : texts_) {
    if (count_starts(passages, tokens) > 0) long_enough.push_back(&passages);
  }
  if (long_enough.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no text holds ", tokens, " tokens to hide an answer in"));
  }
  const std::vector<Passage>& passages = *long_enough[random.below(long_enough.size())];
  std::vector<Passage> run;
  int64_t left = tokens;
  for (size_t i = random.below(count_starts(passages, tokens)); i < passages.size(); ++i) {
    if (passages[i].tokens > left) break;
    left -= passages[i].tokens;
    run.push_back(passages[i]);
  }
  if (2 * left > tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text has passages too long for a stretch of ", tokens, " tokens; expected sentences or lines"));
  }
  return run;
}

absl::StatusOr<std::string> Haystack::draw_sentence(int64_t words, UniformRandom& random) const {
  std::vector<std::string> sentences;
  for (const std::vector<Passage>& passages : texts_) {
    for (const Passage& passage : passages) {
      const std::vector<std::string> parts =
          absl::StrSplit(absl::StripAsciiWhitespace(passage.text), absl::ByAnyChar(" \n"), absl::SkipEmpty());
      if (static_cast<int64_t>(parts.size()) < words) continue;
      std::string sentence = absl::StrJoin(parts, " ");
      if (is_prose(sentence)) sentences.push_back(std::move(sentence));
    }
  }
  if (sentences.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no text holds a sentence of ", words, " words to quote"));
  }
  return sentences[random.below(sentences.size())];
}

}  // namespace foldkv_lab
