#include "samples/lab/generate.h"

#include <optional>

#include "samples/lab/status_macros.h"
#include "samples/lab/stopwatch.h"

namespace foldkv_lab {
namespace {

double rate(int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

}  // namespace

double Generation::prefill_rate() const { return rate(prompt_tokens, prefill_seconds); }
double Generation::decode_rate() const { return rate(decoded_tokens, decode_seconds); }

absl::StatusOr<Generation> generate(Decoder& decoder, const Tokenizer& tokenizer, const std::vector<Token>& prompt,
                                    const GenerationLimit& limit, Sampler& sampler,
                                    absl::FunctionRef<void(const std::string&)> on_text,
                                    absl::FunctionRef<void(int64_t)> on_prefill) {
  if (prompt.empty()) return absl::InvalidArgumentError("the prompt has no token to begin with");
  Generation result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  std::vector<float> logits;
  const Stopwatch prefill;
  LAB_RETURN_IF_ERROR(decoder.feed(prompt, 1, &logits, Decoder::kDefaultChunk, on_prefill));
  result.prefill_seconds = prefill.seconds();
  std::optional<Token> previous = prompt.back();
  const Stopwatch decode;
  for (int64_t i = 0; i < limit.tokens; ++i) {
    const Token token = sampler.choose(logits);
    if (tokenizer.ends_text(token) && !limit.ignores_end) {
      result.ended = true;
      break;
    }
    const std::string piece = tokenizer.piece(token, previous);
    result.tokens.push_back(token);
    result.text += piece;
    on_text(piece);
    previous = token;
    if (i + 1 == limit.tokens) break;  // nothing more is asked of the model
    LAB_RETURN_IF_ERROR(decoder.feed({&token, 1}, 1, &logits));
    ++result.decoded_tokens;
  }
  result.decode_seconds = decode.seconds();
  return result;
}

}  // namespace foldkv_lab
