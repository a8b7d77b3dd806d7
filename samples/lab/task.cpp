#include "samples/lab/task.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr std::array<const char*, 48> kWords = {
    "apple",   "bridge", "castle", "desert", "engine", "forest", "garden", "harbor", "island", "jacket",
    "kitchen", "ladder", "market", "needle", "orange", "palace", "rabbit", "saddle", "temple", "valley",
    "window",  "yellow", "bottle", "candle", "dragon", "finger", "guitar", "hammer", "insect", "jungle",
    "kettle",  "lemon",  "mirror", "napkin", "oyster", "pencil", "ribbon", "shadow", "tunnel", "violin",
    "walnut",  "zebra",  "anchor", "basket", "copper", "dinner", "empire", "flower"};

std::string draw_digits(UniformRandom& random) {
  std::string digits;
  for (int i = 0; i < 5; ++i) digits.push_back(static_cast<char>('0' + random.below(10)));
  return digits;
}

// Words that all differ.
std::vector<std::string> draw_words(size_t count, UniformRandom& random) {
  std::vector<std::string> words(kWords.begin(), kWords.end());
  for (size_t i = 0; i < count; ++i) std::swap(words[i], words[i + random.below(words.size() - i)]);
  words.resize(count);
  return words;
}

absl::StatusOr<Riddle> draw_needle(const Haystack& /*haystack*/, UniformRandom& random) {
  const std::string number = draw_digits(random);
  return Riddle{{absl::StrCat("The secret number is ", number, ". ")},
                "\n\nQuestion: What is the secret number?\nAnswer: The secret number is",
                absl::StrCat(" ", number),
                true};
}

absl::StatusOr<Riddle> draw_needles(const Haystack& /*haystack*/, UniformRandom& random) {
  const std::vector<std::string> labels = draw_words(4, random);
  Riddle riddle;
  riddle.digits = true;
  const size_t asked = random.below(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string number = draw_digits(random);
    riddle.hidden.push_back(absl::StrCat("The ", labels[i], " number is ", number, ". "));
    if (i == asked) riddle.answer = absl::StrCat(" ", number);
  }
  riddle.question = absl::StrCat("\n\nThe text above says: The ", labels[asked], " number is");
  return riddle;
}

absl::StatusOr<Riddle> draw_lookup(const Haystack& /*haystack*/, UniformRandom& random) {
  constexpr size_t kLines = 16;
  const std::vector<std::string> keys = draw_words(kLines, random);
  const size_t asked = random.below(kLines);
  Riddle riddle;
  riddle.digits = true;
  std::string table = "\n\nTable of codes:\n";
  for (size_t i = 0; i < kLines; ++i) {
    const std::string number = draw_digits(random);
    absl::StrAppend(&table, keys[i], ": ", number, "\n");
    if (i == asked) riddle.answer = absl::StrCat(" ", number);
  }
  riddle.hidden.push_back(absl::StrCat(table, "\n"));
  riddle.question = absl::StrCat("\n\nCode of the table above:\n", keys[asked], ":");
  return riddle;
}

absl::StatusOr<Riddle> draw_quote(const Haystack& haystack, UniformRandom& random) {
  constexpr int64_t kGiven = 8;
  constexpr int64_t kAsked = 8;
  LAB_ASSIGN_OR_RETURN(const std::string sentence, haystack.draw_sentence(kGiven + kAsked, random));
  const std::vector<std::string> words = absl::StrSplit(sentence, ' ');
  const std::string given = absl::StrJoin(words.begin(), words.begin() + kGiven, " ");
  const std::string asked = absl::StrJoin(words.begin() + kGiven, words.begin() + kGiven + kAsked, " ");
  return Riddle{
      {absl::StrCat(sentence, " ")}, absl::StrCat("\n\nThe text above says: ", given), absl::StrCat(" ", asked), false};
}

absl::StatusOr<Riddle> draw_copy(const Haystack& /*haystack*/, UniformRandom& random) {
  constexpr size_t kCopied = 6;
  const std::string phrase = absl::StrJoin(draw_words(kCopied, random), " ");
  return Riddle{{absl::StrCat("\n\nThe pass phrase is: ", phrase, ".\n\n")},
                "\n\nThe text above says: The pass phrase is:",
                absl::StrCat(" ", phrase),
                false};
}

}  // namespace

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> kTasks = {
      {"needle", "a number in a sentence", draw_needle},
      {"needles", "four numbers with labels, one is asked", draw_needles},
      {"lookup", "a table of codes, one is asked", draw_lookup},
      {"quote", "a sentence, its first words given", draw_quote},
      {"copy", "a string of random words", draw_copy},
  };
  return kTasks;
}

absl::StatusOr<const Task*> find_task(const std::string& name) {
  std::vector<const char*> names;
  for (const Task& task : all_tasks()) {
    if (task.name == name) return &task;
    names.push_back(task.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no task \"", name, "\"; expected one of ", absl::StrJoin(names, ", ")));
}

}  // namespace foldkv_lab
