#include "samples/lab/observe_cache_gradients.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "samples/lab/cache_gradients.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

foldkv_tensor layer_tensor(const FloatBuffer& numbers, const ModelShape& shape) {
  return foldkv::tensor(numbers.data(), {numbers.size() / shape.kv_width(), shape.kv_heads, shape.head_size});
}

absl::StatusOr<FloatBuffer> read_layer(const foldkv::Sequence& sequence, const ModelShape& shape, int32_t layer,
                                       int32_t side, int64_t tokens) {
  FloatBuffer numbers(tokens * shape.kv_width());
  auto options = foldkv::init<foldkv_rebuild_options>();
  options.layer = layer;
  options.side = side;
  options.token_count = tokens;
  LAB_RETURN_IF_FOLDKV_ERROR("reading keys and values", sequence.rebuild(options, layer_tensor(numbers, shape)));
  return numbers;
}

absl::StatusOr<CachedContext> read_context(const foldkv::Sequence& sequence, const ModelShape& shape, int64_t tokens) {
  CachedContext context;
  context.tokens = tokens;
  for (int32_t layer = 0; layer < shape.layer_count; ++layer) {
    LAB_ASSIGN_OR_RETURN(FloatBuffer keys, read_layer(sequence, shape, layer, FOLDKV_KEYS, tokens));
    context.keys.push_back(std::move(keys));
    LAB_ASSIGN_OR_RETURN(FloatBuffer values, read_layer(sequence, shape, layer, FOLDKV_VALUES, tokens));
    context.values.push_back(std::move(values));
  }
  return context;
}

}  // namespace

absl::Status observe_cache_gradients(FoldkvHost& host, const foldkv::Sequence& sequence, const TextSample& sample,
                                     uint64_t seed, foldkv::Calibrator& calibrator) {
  const auto tokens = static_cast<int64_t>(sample.tokens.size());
  const int64_t fed = tokens / 4;
  if (fed < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a sample of ", tokens, " tokens, expected 4 or more for gradients"));
  }
  const ModelShape& shape = host.model().shape;
  LAB_ASSIGN_OR_RETURN(const CachedContext context, read_context(sequence, shape, tokens - fed));
  const std::vector<Token>& all = sample.tokens;
  LAB_ASSIGN_OR_RETURN(const CacheGradients gradients,
                       cache_gradients(host.model(), context, {all.data() + (tokens - fed), static_cast<size_t>(fed)},
                                       seed, host.threads()));
  std::vector<foldkv_tensor> keys;
  std::vector<foldkv_tensor> values;
  for (const FloatBuffer& layer : gradients.keys) keys.push_back(layer_tensor(layer, shape));
  for (const FloatBuffer& layer : gradients.values) values.push_back(layer_tensor(layer, shape));
  LAB_RETURN_IF_FOLDKV_ERROR("observing gradients", calibrator.observe_gradients(keys, values, 0));
  return absl::OkStatus();
}

}  // namespace foldkv_lab
