#include "samples/lab/cache_gradients.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "samples/lab/decoder_backward.h"
#include "samples/lab/label_loss.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/taped_decoder.h"

namespace foldkv_lab {
namespace {

absl::Status check_tokens(const Model& model, absl::string_view name, std::span<const Token> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < model.shape.vocabulary_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, "[", i, "] is ", tokens[i], ", outside the vocabulary of ", model.shape.vocabulary_size));
  }
  return absl::OkStatus();
}

absl::Status check_arguments(const Model& model, const CachedContext& context, std::span<const Token> fed) {
  LAB_RETURN_IF_ERROR(check_context(model, context));
  if (fed.empty()) return absl::InvalidArgumentError("fed holds no tokens");
  return check_tokens(model, "fed", fed);
}

absl::Status check_labels(const Model& model, std::span<const Token> fed, std::span<const Token> labels) {
  if (labels.size() != fed.size()) {
    return absl::InvalidArgumentError(absl::StrCat("labels holds ", labels.size(), " tokens, fed ", fed.size()));
  }
  return check_tokens(model, "labels", labels);
}

// One for each fed token. The standard's distributions differ between platforms, the generator does not.
std::vector<double> draw_uniforms(uint64_t seed, size_t count) {
  std::mt19937_64 generator(seed);
  std::vector<double> uniforms(count);
  for (double& uniform : uniforms) uniform = static_cast<double>(generator() >> 11) * 0x1p-53;
  return uniforms;
}

absl::StatusOr<CacheGradients> gradients_of(const Model& model, const CachedContext& context,
                                            std::span<const Token> fed, const LabelSource& source,
                                            ThreadPool& threads) {
  const TapedDecoder decoder(model, context, fed, threads);
  FloatBuffer stream_gradient(decoder.output().size());
  LAB_ASSIGN_OR_RETURN(LabelLoss loss, label_loss(model, decoder.output().data(), decoder.rows(), source,
                                                  stream_gradient.data(), threads));
  DecoderBackward backward(decoder, std::move(stream_gradient), threads);
  return CacheGradients{backward.take_keys(), backward.take_values(), std::move(loss.labels), loss.loss};
}

}  // namespace

absl::StatusOr<CacheGradients> cache_gradients(const Model& model, const CachedContext& context,
                                               std::span<const Token> fed, uint64_t seed, ThreadPool& threads) {
  LAB_RETURN_IF_ERROR(check_arguments(model, context, fed));
  const std::vector<double> uniforms = draw_uniforms(seed, fed.size());
  return gradients_of(model, context, fed, {.given = {}, .uniforms = uniforms}, threads);
}

absl::StatusOr<CacheGradients> labels_gradients(const Model& model, const CachedContext& context,
                                                std::span<const Token> fed, std::span<const Token> labels,
                                                ThreadPool& threads) {
  LAB_RETURN_IF_ERROR(check_arguments(model, context, fed));
  LAB_RETURN_IF_ERROR(check_labels(model, fed, labels));
  return gradients_of(model, context, fed, {.given = labels, .uniforms = {}}, threads);
}

absl::StatusOr<double> labels_loss(const Model& model, const CachedContext& context, std::span<const Token> fed,
                                   std::span<const Token> labels, ThreadPool& threads) {
  LAB_RETURN_IF_ERROR(check_arguments(model, context, fed));
  LAB_RETURN_IF_ERROR(check_labels(model, fed, labels));
  const TapedDecoder decoder(model, context, fed, threads);
  LAB_ASSIGN_OR_RETURN(const LabelLoss loss, label_loss(model, decoder.output().data(), decoder.rows(),
                                                        {.given = labels, .uniforms = {}}, nullptr, threads));
  return loss.loss;
}

}  // namespace foldkv_lab
