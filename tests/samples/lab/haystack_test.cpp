#include "samples/lab/haystack.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "doctest/doctest.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("passages are sentences and paragraphs, and together the text") {
  const std::string text = "A first one. And two!\n\nHeading\n\n  print 1.5;\nNo end";
  const std::vector<std::string> passages = split_passages(text);
  CHECK(passages == std::vector<std::string>{"A first one. ", "And two!\n\n", "Heading\n\n  ", "print 1.5;\nNo end"});
  CHECK(absl::StrJoin(passages, "") == text);
  CHECK(split_passages("").empty());
  CHECK(split_passages("x") == std::vector<std::string>{"x"});
  std::string table;
  for (int i = 0; i < 100; ++i) table += "one line of many\n";
  for (const std::string& passage : split_passages(table)) CHECK(passage.size() < 300);
}

TEST_CASE("a run fits, and is a piece of its text") {
  const LanguageModel model = load_stories();
  std::string text;
  for (int i = 0; i < 50; ++i) text += "Tom saw " + std::to_string(i) + " cats. ";
  const auto haystack = Haystack::create({"Too short.", text}, *model.tokenizer);
  REQUIRE(haystack.ok());
  UniformRandom random(3);
  for (int i = 0; i < 20; ++i) {
    const auto run = haystack->draw_run(100, random);
    REQUIRE(run.ok());
    std::string piece;
    int64_t tokens = 0;
    for (const Passage& passage : *run) {
      piece += passage.text;
      tokens += passage.tokens;
    }
    CHECK(text.find(piece) != std::string::npos);
    CHECK(tokens <= 100);
    CHECK(tokens > 80);
  }
  CHECK_FALSE(haystack->draw_run(100000, random).ok());
  const auto unbroken = Haystack::create({std::string(2000, 'x')}, *model.tokenizer);
  REQUIRE(unbroken.ok());
  CHECK_FALSE(unbroken->draw_run(100, random).ok());
}

TEST_CASE("a sentence to quote is plain prose in one line") {
  const LanguageModel model = load_stories();
  const auto haystack = Haystack::create(
      {"It is so (or not) in many ways. Too short. Lily and Tom went to\n    the big park. x = y and so on and on."},
      *model.tokenizer);
  REQUIRE(haystack.ok());
  UniformRandom random(4);
  for (int i = 0; i < 5; ++i) CHECK(*haystack->draw_sentence(5, random) == "Lily and Tom went to the big park.");
  CHECK_FALSE(haystack->draw_sentence(9, random).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
