#include "samples/lab/score_tokenizer.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "doctest/doctest.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "samples/lab/tokenizer_from_llama2c.h"
#include "tests/samples/lab/gguf_builder.h"
#include "tests/samples/lab/hostile.h"
#include "tests/support/data.h"
#include "tests/support/random.h"

namespace foldkv_lab::test {
namespace {

using Tokens = std::vector<Token>;

std::vector<std::byte> stories_tokenizer() {
  return foldkv::test::read_bytes(foldkv::test::data_path("stories260K/tok512.bin"));
}

std::unique_ptr<Tokenizer> stories() {
  auto tokenizer = tokenizer_from_llama2c(stories_tokenizer(), 512);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
  return std::move(tokenizer).value();
}

TEST_CASE("stories260K: text and back") {
  const std::unique_ptr<Tokenizer> tokenizer = stories();
  CHECK(tokenizer->vocabulary_size() == 512);
  CHECK(tokenizer->begin_token() == 1);
  CHECK(tokenizer->ends_text(2));
  const std::string text = "Once upon a time, there was a little girl named Lily.";
  const Tokens prompt = *tokenizer->encode_prompt(text);
  CHECK(prompt[0] == 1);
  CHECK(prompt.size() < text.size() / 2);  // words, not letters
  CHECK(tokenizer->decode(prompt) == text);
  CHECK(tokenizer->piece(prompt[1], std::nullopt)[0] == 'O');  // the blank before the first word goes
}

TEST_CASE("stories260K: any bytes come back") {
  const std::unique_ptr<Tokenizer> tokenizer = stories();
  foldkv::test::Random random(1);
  for (int round = 0; round < 50; ++round) {
    std::string text = "x";
    for (int64_t i = random.between(0, 60); i > 0; --i) text.push_back(static_cast<char>(random.between(0, 255)));
    CHECK(tokenizer->decode(*tokenizer->encode(text)) == text);
  }
  const std::string euro = "3 \xe2\x82\xac";
  CHECK(tokenizer->decode(*tokenizer->encode(euro)) == euro);
}

TEST_CASE("a tokenizer file that is cut or changed") {
  const std::vector<std::byte> file = stories_tokenizer();
  CHECK_FALSE(tokenizer_from_llama2c(file, 511).ok());
  CHECK_FALSE(tokenizer_from_llama2c(file, 513).ok());
  CHECK_FALSE(tokenizer_from_llama2c(file, int64_t{1} << 60).ok());
  CHECK_FALSE(tokenizer_from_llama2c(file, 0).ok());
  for_each_truncation(file, 1,
                      [](std::span<const std::byte> bytes) { CHECK_FALSE(tokenizer_from_llama2c(bytes, 512).ok()); });
  const std::byte patterns[] = {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}};
  int valid = 0;
  for_each_flip(file, file.size(), patterns, [&](std::span<const std::byte> bytes) {
    const auto tokenizer = tokenizer_from_llama2c(bytes, 512);
    if (!tokenizer.ok()) return;
    ++valid;
    CHECK((*tokenizer)->encode("Once upon").ok());
  });
  CHECK(valid > 0);
}

// Tokens 0 to 2 are special, 3 + b is byte b.
GgufBuilder scored_file() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> kinds = {2, 3, 3};
  std::vector<float> scores(259, 0.0f);
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(absl::StrFormat("<0x%02X>", byte));
  kinds.resize(259, 6);
  const std::string blank = "\xe2\x96\x81";
  for (const std::string& text :
       {std::string("a"), std::string("b"), blank, std::string("ab"), blank + "a", blank + "ab"}) {
    tokens.push_back(text);
    kinds.push_back(1);
    scores.push_back(-static_cast<float>(tokens.size()));
  }
  scores[262] = -1.0f;  // "ab" is the best
  GgufBuilder file;
  file.add_text("tokenizer.ggml.model", "llama");
  file.add_texts("tokenizer.ggml.tokens", tokens);
  file.add_i32s("tokenizer.ggml.token_type", kinds);
  file.add_f32s("tokenizer.ggml.scores", scores);
  file.add_u32("tokenizer.ggml.bos_token_id", 1);
  file.add_u32("tokenizer.ggml.eos_token_id", 2);
  file.add_u32("tokenizer.ggml.unknown_token_id", 0);
  return file;
}

TEST_CASE("the GGUF form: blanks, bytes, begin token") {
  GgufBuilder builder = scored_file();
  const std::vector<std::byte> bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  REQUIRE(file.ok());
  const auto tokenizer = tokenizer_from_gguf(*file);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
  const Tokenizer& t = **tokenizer;
  CHECK(*t.encode("ab") == Tokens{264});             // blank + ab
  CHECK(*t.encode("aab") == Tokens{263, 262});       // "ab" is joined before blank + "a"
  CHECK(*t.encode("b a") == Tokens{261, 260, 263});  // blank, b, blank + a
  CHECK(*t.encode("\xc3\xa9") == Tokens{261, 3 + 0xc3, 3 + 0xa9});
  CHECK(*t.encode("a</s>a") == Tokens{263, 2, 263});
  CHECK(*t.encode_prompt("a") == Tokens{1, 263});
  for (const std::string text : {"ab b a", "\xc3\xa9 a", "", " a", "a  "}) CHECK(t.decode(*t.encode(text)) == text);
  CHECK(t.ends_text(2));
}

TEST_CASE("scores and kinds that do not fit the tokens") {
  const auto vocabulary = Vocabulary::create({"a", "b"}, {TokenKind::kNormal, TokenKind::kNormal});
  REQUIRE(vocabulary.ok());
  CHECK_FALSE(ScoreTokenizer::create(*vocabulary, {1.0f}, {}).ok());
  CHECK_FALSE(ScoreTokenizer::create(*vocabulary, {1.0f, std::nanf("")}, {}).ok());
  CHECK_FALSE(Vocabulary::create({"a", "b"}, {TokenKind::kNormal}).ok());
  CHECK_FALSE(Vocabulary::create({}, {}).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
