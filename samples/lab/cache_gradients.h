#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/aligned_buffer.h"
#include "samples/lab/cached_context.h"
#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// How the loss of tokens fed after a context changes with every number of its cache.
struct CacheGradients {
  std::vector<FloatBuffer> keys;    // for each layer [tokens of the context, kv_width], of keys before rotation
  std::vector<FloatBuffer> values;  // likewise
  std::vector<Token> labels;        // for each fed token the label whose -log probability is in the loss
  double loss = 0;                  // sum over the fed tokens
};

// Fisher gradients: `fed` stands at the positions after the context, and after each fed token a label is drawn from
// what the model itself predicts there. Averages of products of such gradients over seeds and samples are the Fisher
// information of the cache: to second order what a change of it costs in KL divergence. Results depend neither on the
// number of threads nor on the platform's random distributions.
[[nodiscard]] absl::StatusOr<CacheGradients> cache_gradients(const Model& model, const CachedContext& context,
                                                             std::span<const Token> fed, uint64_t seed,
                                                             ThreadPool& threads);

// The same for labels that are given, one for each fed token.
[[nodiscard]] absl::StatusOr<CacheGradients> labels_gradients(const Model& model, const CachedContext& context,
                                                              std::span<const Token> fed, std::span<const Token> labels,
                                                              ThreadPool& threads);

// Their loss alone.
[[nodiscard]] absl::StatusOr<double> labels_loss(const Model& model, const CachedContext& context,
                                                 std::span<const Token> fed, std::span<const Token> labels,
                                                 ThreadPool& threads);

}  // namespace foldkv_lab
