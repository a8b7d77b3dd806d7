#include "samples/lab/pre_tokenizer.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

using Words = std::vector<std::string>;

Words words(PreTokenizer pre_tokenizer, const std::string& text) {
  Words result;
  std::string joined;
  for (const absl::string_view word : split_words(pre_tokenizer, text)) {
    result.emplace_back(word);
    joined += result.back();
  }
  CHECK(joined == text);
  return result;
}

TEST_CASE("gpt2") {
  const auto cut = [](const std::string& text) { return words(PreTokenizer::kGpt2, text); };
  CHECK(cut("") == Words{});
  CHECK(cut("Hello, World! I'm") == Words{"Hello", ",", " World", "!", " I", "'m"});
  CHECK(cut("we'LL") == Words{"we", "'", "LL"});
  CHECK(cut("12 345") == Words{"12", " 345"});
  CHECK(cut("a  b") == Words{"a", " ", " b"});
  CHECK(cut("a   ") == Words{"a", "   "});
  CHECK(cut("a\n\n b") == Words{"a", "\n\n", " b"});
  CHECK(cut("a\nb") == Words{"a", "\n", "b"});
  CHECK(cut("  12") == Words{" ", " 12"});
  // é as one character and as two: the accent alone is no letter.
  CHECK(cut("\xc3\xa9t\xc3\xa9") == Words{"\xc3\xa9t\xc3\xa9"});
  CHECK(cut("e\xcc\x81t") == Words{"e", "\xcc\x81", "t"});
  // No-break space is a space, but not the blank that goes with a word.
  CHECK(cut("a\xc2\xa0"
            "b") == Words{"a", "\xc2\xa0", "b"});
}

TEST_CASE("smollm: every digit alone") {
  const auto cut = [](const std::string& text) { return words(PreTokenizer::kSmollm, text); };
  CHECK(cut("in 2024.") == Words{"in", " ", "2", "0", "2", "4", "."});
  // At the end of a piece all spaces stay together, though a word follows in the text.
  CHECK(cut("a  1") == Words{"a", "  ", "1"});
  CHECK(cut("a  b1") == Words{"a", " ", " b", "1"});
  CHECK(cut("x\xc2\xbd") == Words{"x", "\xc2\xbd"});  // one half is a number
}

TEST_CASE("qwen2") {
  const auto cut = [](const std::string& text) { return words(PreTokenizer::kQwen2, text); };
  CHECK(cut("Hello, World! we'LL") == Words{"Hello", ",", " World", "!", " we", "'LL"});
  CHECK(cut("(abc") == Words{"(abc"});
  CHECK(cut("12") == Words{"1", "2"});
  CHECK(cut("end.\n\n  x") == Words{"end", ".\n\n", " ", " x"});
  CHECK(cut("a \n \n  b") == Words{"a", " \n \n", " ", " b"});
  CHECK(cut("\tif") == Words{"\tif"});
  CHECK(cut("a  1") == Words{"a", " ", " ", "1"});
}

TEST_CASE("bytes that are not UTF-8 are kept, one by one") {
  for (const PreTokenizer pre_tokenizer : {PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kQwen2}) {
    CHECK(words(pre_tokenizer,
                "a\xff\xfe"
                "b")
              .size() == 3);
    CHECK(words(pre_tokenizer, "\xe2\x82").size() == 1);      // a sequence that breaks off
    CHECK(words(pre_tokenizer, "\xed\xa0\x80").size() == 1);  // a surrogate
    CHECK(words(pre_tokenizer, std::string("a\0", 2)).size() == 2);
  }
}

TEST_CASE("names") {
  CHECK(*pre_tokenizer_by_name("smollm") == PreTokenizer::kSmollm);
  CHECK(*pre_tokenizer_by_name("qwen2") == PreTokenizer::kQwen2);
  CHECK_FALSE(pre_tokenizer_by_name("other").ok());
}

}  // namespace
}  // namespace foldkv_lab::test
