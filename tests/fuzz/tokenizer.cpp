// A tokenizer from anywhere, and a text. The input: the kind of file (0: GGUF, else llama2.c with so many tokens), the
// length of the text, the text, the file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "samples/lab/tokenizer_from_llama2c.h"
#include "tests/fuzz/oracle.h"

namespace foldkv_lab {
namespace {

using foldkv::fuzz::must;

absl::StatusOr<std::unique_ptr<Tokenizer>> read_tokenizer(uint8_t kind, std::span<const std::byte> bytes) {
  if (kind != 0) return tokenizer_from_llama2c(bytes, kind);
  const auto file = GgufFile::parse(bytes);
  if (!file.ok()) return file.status();
  return tokenizer_from_gguf(*file);
}

void use(const Tokenizer& tokenizer, const std::string& text) {
  const auto tokens = tokenizer.encode_prompt(text);
  if (!tokens.ok()) return;
  for (const Token token : *tokens) {
    must(token >= 0 && token < tokenizer.vocabulary_size(), "tokens are of the vocabulary");
    (void)tokenizer.ends_text(token);
  }
  (void)tokenizer.decode(*tokens);
  for (const Token token : {Token{-1}, static_cast<Token>(tokenizer.vocabulary_size())}) {
    must(tokenizer.piece(token, std::nullopt).empty(), "numbers outside the vocabulary add nothing");
  }
}

}  // namespace
}  // namespace foldkv_lab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(data[1], size - 2);
  const std::string text(data + 2, data + 2 + length);
  const auto bytes = std::as_bytes(std::span(data + 2 + length, size - 2 - length));
  const auto tokenizer = foldkv_lab::read_tokenizer(data[0], bytes);
  if (!tokenizer.ok()) return 0;
  ++foldkv::fuzz::accepted;
  foldkv_lab::use(**tokenizer, text);
  foldkv_lab::use(**tokenizer, "Once upon a time <|end|> \xc3\xa9\xff 123\n");
  return 0;
}
