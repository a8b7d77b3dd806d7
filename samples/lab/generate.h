#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/decoder.h"
#include "samples/lab/sampler.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

struct Generation {
  std::vector<Token> tokens;  // without the prompt, without the end token
  std::string text;
  bool ended = false;  // the model ended its text itself
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  int64_t decoded_tokens = 0;  // tokens that decode_seconds counts: those that were fed back

  [[nodiscard]] double prefill_rate() const;  // tokens per second
  [[nodiscard]] double decode_rate() const;
};

struct GenerationLimit {
  int64_t tokens = 0;
  bool ignores_end = false;  // goes on where the model ends its text
};

// Writes tokens after the prompt. on_text is given each piece of text as it is written.
[[nodiscard]] absl::StatusOr<Generation> generate(
    Decoder& decoder, const Tokenizer& tokenizer, const std::vector<Token>& prompt, const GenerationLimit& limit,
    Sampler& sampler, absl::FunctionRef<void(const std::string&)> on_text,
    absl::FunctionRef<void(int64_t)> on_prefill = [](int64_t) {});

}  // namespace foldkv_lab
