#include "samples/lab/key_similarities.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Attention = std::unique_ptr<FoldkvAttention>;

absl::StatusOr<Attention> create_exact(FoldkvHost& host, const SimilarityOptions& options) {
  FoldkvAttention::Options exact = options.attention;
  exact.plan.clear();
  exact.eviction.reset();
  exact.sequence.dtype = FOLDKV_F32;
  return FoldkvAttention::create(host, nullptr, exact);
}

absl::Status feed(FoldkvHost& host, FoldkvAttention& attention, std::span<const Token> tokens) {
  std::vector<float> no_logits;
  return Decoder(host.model(), attention, host.threads()).feed(tokens, 0, &no_logits);
}

// Keys [count, kv width] of the last tokens that are held.
absl::StatusOr<std::vector<float>> last_keys(FoldkvHost& host, const FoldkvAttention& attention, int32_t layer,
                                             int64_t count) {
  const ModelShape& shape = host.model().shape;
  std::vector<float> keys(static_cast<size_t>(count * shape.kv_width()));
  auto question = foldkv::init<foldkv_rebuild_options>();
  question.layer = layer;
  question.side = FOLDKV_KEYS;
  question.first_token = attention.token_count() - count;
  question.token_count = count;
  LAB_RETURN_IF_FOLDKV_ERROR("reading keys",
                             attention.sequence().rebuild(
                                 question, foldkv::tensor(keys.data(), {count, shape.kv_heads, shape.head_size})));
  return keys;
}

// Adds the similarities of one text to those of all.
absl::Status add_text(FoldkvHost& host, std::span<const Token> prefix, const SimilarityOptions& options,
                      std::vector<double>* sums) {
  const size_t half = prefix.size() / 2;
  const std::span<const Token> second = prefix.subspan(half);
  LAB_ASSIGN_OR_RETURN(const Attention whole, create_exact(host, options));
  LAB_RETURN_IF_ERROR(feed(host, *whole, prefix));
  LAB_ASSIGN_OR_RETURN(const Attention alone, create_exact(host, options));
  LAB_RETURN_IF_ERROR(feed(host, *alone, prefix.first(static_cast<size_t>(options.sinks))));
  alone->jump_to(static_cast<int64_t>(half));
  LAB_RETURN_IF_ERROR(feed(host, *alone, second));
  for (size_t layer = 0; layer < sums->size(); ++layer) {
    const auto index = static_cast<int32_t>(layer);
    const auto count = static_cast<int64_t>(second.size());
    LAB_ASSIGN_OR_RETURN(const std::vector<float> with, last_keys(host, *whole, index, count));
    LAB_ASSIGN_OR_RETURN(const std::vector<float> without, last_keys(host, *alone, index, count));
    (*sums)[layer] += mean_cosine(with, without, host.model().shape.head_size);
  }
  return absl::OkStatus();
}

}  // namespace

double mean_cosine(std::span<const float> a, std::span<const float> b, int64_t size) {
  const size_t width = static_cast<size_t>(size);
  double sum = 0;
  for (size_t row = 0; row < a.size(); row += width) {
    double product = 0;
    double square_a = 0;
    double square_b = 0;
    for (size_t i = row; i < row + width; ++i) {
      product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      square_a += static_cast<double>(a[i]) * static_cast<double>(a[i]);
      square_b += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    if (square_a > 0 && square_b > 0) sum += product / std::sqrt(square_a * square_b);
  }
  return sum * static_cast<double>(size) / static_cast<double>(a.size());
}

absl::StatusOr<std::vector<double>> key_similarities(FoldkvHost& host, const std::vector<TextSample>& texts,
                                                     const SimilarityOptions& options,
                                                     absl::FunctionRef<void(int64_t)> progress) {
  if (options.sinks < 1 || options.sinks > options.prefix / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.sinks, " sinks and the second half of ", options.prefix, " tokens; expected 1 sink to ",
                     options.prefix / 2));
  }
  std::vector<double> similarities(static_cast<size_t>(host.model().shape.layer_count));
  int64_t done = 0;
  for (const TextSample& text : texts) {
    if (static_cast<int64_t>(text.tokens.size()) < options.prefix) {
      return absl::InvalidArgumentError(
          absl::StrCat("a prefix of ", options.prefix, " in a text of ", text.tokens.size(), " tokens"));
    }
    const std::span<const Token> tokens(text.tokens);
    LAB_RETURN_IF_ERROR(add_text(host, tokens.first(static_cast<size_t>(options.prefix)), options, &similarities));
    progress(++done);
  }
  for (double& similarity : similarities) similarity /= static_cast<double>(texts.size());
  return similarities;
}

}  // namespace foldkv_lab
