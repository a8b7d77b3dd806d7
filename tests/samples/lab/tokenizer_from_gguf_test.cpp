#include "samples/lab/tokenizer_from_gguf.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/gguf_file.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

std::string error_of(GgufBuilder builder) {
  const std::vector<std::byte> bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  const auto tokenizer = tokenizer_from_gguf(*file);
  return tokenizer.ok() ? "" : std::string(tokenizer.status().message());
}

GgufBuilder with_tokens(const std::string& model, const std::vector<std::string>& merges,
                        const std::vector<int32_t>& kinds) {
  GgufBuilder file;
  file.add_text("tokenizer.ggml.model", model);
  file.add_texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  file.add_texts("tokenizer.ggml.merges", merges);
  file.add_i32s("tokenizer.ggml.token_type", kinds);
  return file;
}

TEST_CASE("what is wrong is named") {
  CHECK(error_of(GgufBuilder()).find("tokenizer.ggml.model is missing") != std::string::npos);
  CHECK(error_of(with_tokens("bert", {}, {1, 1, 1})).find("\"bert\"") != std::string::npos);
  CHECK(error_of(with_tokens("gpt2", {"ab"}, {1, 1, 1})).find("no blank") != std::string::npos);
  CHECK(error_of(with_tokens("gpt2", {"a c"}, {1, 1, 1})).find("merge 0") != std::string::npos);
  CHECK(error_of(with_tokens("gpt2", {"a b"}, {1, 1})).find("2 token kinds for 3") != std::string::npos);
  CHECK(error_of(with_tokens("gpt2", {"a b"}, {1, 1, 7})).find("token type 7") != std::string::npos);
  CHECK(error_of(with_tokens("llama", {}, {1, 1, 1})).find("tokenizer.ggml.scores is missing") != std::string::npos);
  GgufBuilder file = with_tokens("gpt2", {"a b"}, {1, 1, 1});
  file.add_u32("tokenizer.ggml.eos_token_id", 3);
  CHECK(error_of(file).find("eos_token_id is 3, the vocabulary has 3") != std::string::npos);
  CHECK(error_of(with_tokens("gpt2", {"a b"}, {1, 1, 1})).empty());
}

TEST_CASE("a begin token only where the file asks for one") {
  for (const bool wanted : {false, true}) {
    GgufBuilder builder = with_tokens("gpt2", {"a b"}, {1, 1, 1});
    builder.add_u32("tokenizer.ggml.bos_token_id", 1);
    builder.add_truth("tokenizer.ggml.add_bos_token", wanted ? 1 : 0);
    const std::vector<std::byte> bytes = builder.build();
    const auto file = GgufFile::parse(bytes);
    REQUIRE(file.ok());
    const auto tokenizer = tokenizer_from_gguf(*file);
    REQUIRE(tokenizer.ok());
    CHECK((*tokenizer)->encode_prompt("ab")->size() == (wanted ? 2u : 1u));
  }
}

}  // namespace
}  // namespace foldkv_lab::test
