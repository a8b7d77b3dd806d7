#include "samples/lab/byte_pair_tokenizer.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/byte_alphabet.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "tests/samples/lab/small_models.h"
#include "tests/support/random.h"

namespace foldkv_lab::test {
namespace {

// Token 0 is special, 1 + b is byte b, then "he", "ll", "hell", " w", " wo".
constexpr Token kEnd = 0;
constexpr Token kHell = 259;
constexpr Token kBlankWo = 261;

Token byte_token(char byte) { return 1 + static_cast<Token>(static_cast<uint8_t>(byte)); }

std::unique_ptr<Tokenizer> tokenizer() {
  GgufBuilder builder;
  add_byte_pair_tokenizer(&builder);
  const std::vector<std::byte> bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  REQUIRE(file.ok());
  auto result = tokenizer_from_gguf(*file);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  return std::move(result).value();
}

TEST_CASE("merges apply in their order, inside words") {
  const auto encode = [t = tokenizer()](const std::string& text) { return *t->encode(text); };
  CHECK(encode("hello wow") == std::vector<Token>{kHell, byte_token('o'), kBlankWo, byte_token('w')});
  CHECK(encode("llll") == std::vector<Token>{258, 258});
  CHECK(encode("lllh") == std::vector<Token>{258, byte_token('l'), byte_token('h')});
  CHECK(encode("").empty());
}

TEST_CASE("names of special tokens become these tokens, and end the text") {
  const std::unique_ptr<Tokenizer> t = tokenizer();
  CHECK(*t->encode("he<|im_end|>he") == std::vector<Token>{257, kEnd, 257});
  CHECK(*t->encode("<|im_end") == *t->encode("<|im_end"));
  CHECK(t->encode("<|im_end")->size() == 8);
  CHECK(t->ends_text(kEnd));
  CHECK_FALSE(t->ends_text(1));
  CHECK(t->piece(kEnd, std::nullopt).empty());
  CHECK(t->piece(100000, std::nullopt).empty());
  CHECK(t->piece(-1, std::nullopt).empty());
  CHECK_FALSE(t->begin_token().has_value());
}

TEST_CASE("any bytes come back") {
  const std::unique_ptr<Tokenizer> t = tokenizer();
  foldkv::test::Random random(1);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int64_t i = random.between(0, 60); i > 0; --i) text.push_back(static_cast<char>(random.between(0, 255)));
    CHECK(t->decode(*t->encode(text)) == text);
  }
}

TEST_CASE("a long word takes no quadratic time") {
  const std::unique_ptr<Tokenizer> t = tokenizer();
  CHECK(t->encode(std::string(1000000, 'l'))->size() == 500000);
}

TEST_CASE("merges of what is no token, and bytes without a token") {
  const std::vector<TokenKind> kinds(3, TokenKind::kNormal);
  auto vocabulary = Vocabulary::create({"a", "b", "ab"}, kinds);
  REQUIRE(vocabulary.ok());
  CHECK_FALSE(BytePairTokenizer::create(*vocabulary, {{"a", "c"}}, {}).ok());
  CHECK_FALSE(BytePairTokenizer::create(*vocabulary, {{"b", "a"}}, {}).ok());
  const auto small = BytePairTokenizer::create(*vocabulary, {{"a", "b"}}, {});
  REQUIRE(small.ok());
  CHECK(*(*small)->encode("abba") == std::vector<Token>{2, 1, 0});
  CHECK_FALSE((*small)->encode("abc").ok());
}

TEST_CASE("bytes that the vocabulary lacks are read as the replacement character") {
  std::vector<std::string> texts = {"a", "b"};
  for (const int byte : {0xef, 0xbf, 0xbd}) texts.push_back(character_of_byte(static_cast<uint8_t>(byte)));
  auto vocabulary = Vocabulary::create(texts, std::vector<TokenKind>(texts.size(), TokenKind::kNormal));
  REQUIRE(vocabulary.ok());
  const auto tokenizer = BytePairTokenizer::create(*vocabulary, {}, {});
  REQUIRE(tokenizer.ok());
  CHECK(*(*tokenizer)
             ->encode("a\xf6"
                      "b") == std::vector<Token>{0, 2, 3, 4, 1});  // no UTF-8
  CHECK(*(*tokenizer)
             ->encode("\xc3\xa9"
                      "a") == std::vector<Token>{2, 3, 4, 0});  // one character, one replacement
  CHECK(*(*tokenizer)->encode("\xef\xbf\xbd") == std::vector<Token>{2, 3, 4});
}

}  // namespace
}  // namespace foldkv_lab::test
