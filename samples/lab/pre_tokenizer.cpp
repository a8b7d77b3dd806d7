#include "samples/lab/pre_tokenizer.h"

#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/unicode.h"

namespace foldkv_lab {
namespace {

// The characters of a piece of text with their places, and the alternatives of the expressions above as functions:
// each returns where its match ends, or `start` for no match.
class Cutter {
 public:
  explicit Cutter(absl::string_view text) : text_(text) {
    for (uint64_t place = 0; place < text.size();) {
      const Character character = character_at(text, place);
      characters_.push_back(character);
      places_.push_back(place);
      place += character.length;
    }
    places_.push_back(text.size());
  }

  void cut_gpt2(std::vector<absl::string_view>* words) const {
    cut(words, [this](size_t start) { return match_gpt2(start); });
  }
  void cut_qwen2(std::vector<absl::string_view>* words) const {
    cut(words, [this](size_t start) { return match_qwen2(start); });
  }

  // The pieces between numbers, and every number alone.
  [[nodiscard]] std::vector<absl::string_view> isolate_numbers() const {
    std::vector<absl::string_view> pieces;
    size_t start = 0;
    for (size_t i = 0; i < characters_.size(); ++i) {
      if (characters_[i].kind != CharacterKind::kNumber) continue;
      if (i > start) pieces.push_back(part(start, i));
      pieces.push_back(part(i, i + 1));
      start = i + 1;
    }
    if (start < characters_.size()) pieces.push_back(part(start, characters_.size()));
    return pieces;
  }

 private:
  [[nodiscard]] absl::string_view part(size_t start, size_t end) const {
    return text_.substr(places_[start], places_[end] - places_[start]);
  }

  template <typename Match>
  void cut(std::vector<absl::string_view>* words, const Match& match) const {
    for (size_t start = 0; start < characters_.size();) {
      size_t end = match(start);
      if (end == start) end = start + 1;  // the expressions leave nothing out; this only makes an end certain
      words->push_back(part(start, end));
      start = end;
    }
  }

  [[nodiscard]] bool is(size_t index, CharacterKind kind) const {
    return index < characters_.size() && characters_[index].kind == kind;
  }
  [[nodiscard]] bool is_code(size_t index, int32_t code) const {
    return index < characters_.size() && characters_[index].code == code;
  }
  [[nodiscard]] bool is_line_end(size_t index) const { return is_code(index, '\r') || is_code(index, '\n'); }

  [[nodiscard]] size_t skip(size_t start, CharacterKind kind) const {
    while (is(start, kind)) ++start;
    return start;
  }

  [[nodiscard]] size_t match_contraction(size_t start, bool any_case) const {
    static constexpr std::array<absl::string_view, 7> kEndings = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    if (!is_code(start, '\'')) return start;
    const absl::string_view rest = text_.substr(places_[start], 3);
    for (const absl::string_view ending : kEndings) {
      const bool found = any_case ? absl::StartsWithIgnoreCase(rest, ending) : absl::StartsWith(rest, ending);
      if (found) return start + ending.size();  // ASCII: one character is one byte
    }
    return start;
  }

  // A run of `kind`, after at most one blank.
  [[nodiscard]] size_t match_run(size_t start, CharacterKind kind) const {
    const size_t first = is_code(start, ' ') ? start + 1 : start;
    const size_t end = skip(first, kind);
    return end > first ? end : start;
  }

  // \s+(?!\S) | \s+ : before a word the last space stays behind, unless it is the only one.
  [[nodiscard]] size_t match_spaces(size_t start) const {
    const size_t end = skip(start, CharacterKind::kSpace);
    if (end == start || end == characters_.size()) return end;
    return end - start > 1 ? end - 1 : end;
  }

  // \s*[\r\n]+ : up to the last line end of the run of spaces.
  [[nodiscard]] size_t match_line_ends(size_t start) const {
    size_t end = skip(start, CharacterKind::kSpace);
    while (end > start && !is_line_end(end - 1)) --end;
    return end;
  }

  [[nodiscard]] size_t match_gpt2(size_t start) const {
    if (const size_t end = match_contraction(start, false); end > start) return end;
    for (const CharacterKind kind : {CharacterKind::kLetter, CharacterKind::kNumber, CharacterKind::kOther}) {
      if (const size_t end = match_run(start, kind); end > start) return end;
    }
    return match_spaces(start);
  }

  [[nodiscard]] size_t match_qwen2(size_t start) const {
    if (const size_t end = match_contraction(start, true); end > start) return end;
    if (const size_t end = match_letters_after_any(start); end > start) return end;
    if (is(start, CharacterKind::kNumber)) return start + 1;
    if (size_t end = match_run(start, CharacterKind::kOther); end > start) {
      while (is_line_end(end)) ++end;
      return end;
    }
    if (const size_t end = match_line_ends(start); end > start) return end;
    return match_spaces(start);
  }

  // [^\r\n\p{L}\p{N}]?\p{L}+
  [[nodiscard]] size_t match_letters_after_any(size_t start) const {
    const bool has_prefix =
        !is_line_end(start) && !is(start, CharacterKind::kLetter) && !is(start, CharacterKind::kNumber);
    const size_t first = has_prefix ? start + 1 : start;
    const size_t end = skip(first, CharacterKind::kLetter);
    return end > first ? end : start;
  }

  absl::string_view text_;
  std::vector<Character> characters_;
  std::vector<uint64_t> places_;  // of each character, and the end
};

}  // namespace

absl::StatusOr<PreTokenizer> pre_tokenizer_by_name(absl::string_view name) {
  if (name == "gpt-2" || name == "default") return PreTokenizer::kGpt2;
  if (name == "smollm") return PreTokenizer::kSmollm;
  if (name == "qwen2") return PreTokenizer::kQwen2;
  return absl::UnimplementedError(
      absl::StrCat("pre-tokenizer \"", name, "\", expected gpt-2, default, smollm or qwen2"));
}

std::vector<absl::string_view> split_words(PreTokenizer pre_tokenizer, absl::string_view text) {
  std::vector<absl::string_view> words;
  const Cutter cutter(text);
  switch (pre_tokenizer) {
    case PreTokenizer::kGpt2: cutter.cut_gpt2(&words); break;
    case PreTokenizer::kQwen2: cutter.cut_qwen2(&words); break;
    case PreTokenizer::kSmollm:
      for (const absl::string_view piece : cutter.isolate_numbers()) Cutter(piece).cut_gpt2(&words);
      break;
  }
  return words;
}

}  // namespace foldkv_lab
