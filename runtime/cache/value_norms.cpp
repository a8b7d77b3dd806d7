#include "runtime/cache/value_norms.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/checked.h"
#include "runtime/cache/exact_rows.h"

namespace foldkv {
namespace {

// Tokens in hand at once.
constexpr int64_t kBlockTokens = 256;
constexpr int64_t kNumberBytes = static_cast<int64_t>(sizeof(float));

bool weighs_outputs(const SequencePolicy& policy) {
  return policy.eviction->policy.reduction.weighting == ValueWeighting::kOutputNormL1;
}

// Values of one query head times its columns of the output projection.
backend::ProductShape output_shape(const Model& model, int64_t layer) {
  backend::ProductShape shape;
  shape.rows = kBlockTokens;
  shape.inner = model.layer(layer).head_size;
  shape.columns = model.weights(layer).output.row_count;
  shape.weight_format = model.weights(layer).output.format;
  return shape;
}

// Memory of a block: values [kBlockTokens][head size], outputs [kBlockTokens][hidden], the product's.
struct Scratch {
  float* values;
  float* outputs;
  std::byte* product;

  Scratch(const Model& model, int64_t layer, std::byte* memory) {
    values = reinterpret_cast<float*>(memory);
    memory += values_bytes(model, layer);
    outputs = reinterpret_cast<float*>(memory);
    product = memory + outputs_bytes(model, layer);
  }
  static int64_t values_bytes(const Model& model, int64_t layer) {
    return round_up(kBlockTokens * model.layer(layer).head_size * kNumberBytes, kBlockAlignment);
  }
  static int64_t outputs_bytes(const Model& model, int64_t layer) {
    return round_up(kBlockTokens * model.weights(layer).output.row_count * kNumberBytes, kBlockAlignment);
  }
};

double length_of(std::span<const float> row, ValueWeighting weighting) {
  double sum = 0.0;
  for (const float number : row) {
    const auto value = static_cast<double>(number);
    sum += weighting == ValueWeighting::kValueNormL2 ? value * value : std::abs(value);
  }
  return weighting == ValueWeighting::kValueNormL2 ? std::sqrt(sum) : sum;
}

// Adds the lengths of rows [count][width] of device memory, times `share`.
Status add_lengths(backend::Backend& backend, const float* rows, int64_t count, int64_t width, ValueWeighting weighting,
                   double share, double* lengths) {
  std::vector<float> host(static_cast<size_t>(count * width));
  FOLDKV_RETURN_IF_ERROR(backend.copy_to_host(reinterpret_cast<std::byte*>(host.data()),
                                              reinterpret_cast<const std::byte*>(rows), count * width * kNumberBytes));
  for (int64_t row = 0; row < count; ++row) {
    lengths[row] +=
        share *
        length_of(std::span(host).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width)), weighting);
  }
  return absl::OkStatus();
}

// Likewise of the rows through the output projection of every query head that shares them.
Status add_output_lengths(const Sequence& sequence, int64_t layer, int64_t head, int64_t count,
                          backend::Product& product, const Scratch& scratch, double* lengths) {
  const LayerRules& rules = sequence.model().layer(layer);
  const int64_t group = rules.query_heads / rules.kv_heads;
  const TensorView& output = sequence.model().weights(layer).output;
  for (int64_t query_head = head * group; query_head < (head + 1) * group; ++query_head) {
    backend::ProductRequest request;
    request.x = scratch.values;
    request.weight = output.columns(query_head * rules.head_size, rules.head_size);
    request.y = scratch.outputs;
    request.workspace = scratch.product;
    FOLDKV_RETURN_IF_ERROR(product.run(request));
    FOLDKV_RETURN_IF_ERROR(add_lengths(sequence.runtime().backend(), scratch.outputs, count, output.row_count,
                                       ValueWeighting::kOutputNormL1, 1.0 / static_cast<double>(group), lengths));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<int64_t> norms_workspace(const Runtime& runtime, const Model& model, const SequencePolicy& policy) {
  if (policy.eviction == nullptr || policy.eviction->policy.reduction.weighting == ValueWeighting::kNone) return 0;
  int64_t bytes = 0;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    int64_t needed = Scratch::values_bytes(model, layer);
    if (weighs_outputs(policy)) {
      FOLDKV_ASSIGN_OR_RETURN(const auto product, runtime.backend().make_product(output_shape(model, layer)));
      needed += Scratch::outputs_bytes(model, layer) + product->workspace_bytes();
    }
    bytes = std::max(bytes, needed);
  }
  return bytes;
}

StatusOr<ScoreTable> value_norms(const Sequence& sequence, int64_t layer, int64_t head, int64_t tokens,
                                 std::byte* workspace) {
  const Model& model = sequence.model();
  backend::Backend& backend = sequence.runtime().backend();
  const ValueWeighting weighting = sequence.policy().eviction->policy.reduction.weighting;
  const int64_t head_size = model.layer(layer).head_size;
  const Scratch scratch(model, layer, workspace);
  std::unique_ptr<backend::Product> product;
  if (weighs_outputs(sequence.policy())) {
    FOLDKV_ASSIGN_OR_RETURN(product, backend.make_product(output_shape(model, layer)));
  }
  ScoreTable norms(1, tokens);
  for (int64_t first = 0; first < tokens; first += kBlockTokens) {
    const int64_t count = std::min(kBlockTokens, tokens - first);
    const MutableTensorView rows{reinterpret_cast<std::byte*>(scratch.values), NumberFormat::kF32, count, head_size,
                                 head_size};
    FOLDKV_RETURN_IF_ERROR(read_heads(sequence, layer, {head, 1}, backend::Side::kValues, first, rows));
    double* const lengths = norms.scores.data() + first;
    FOLDKV_RETURN_IF_ERROR(product == nullptr
                               ? add_lengths(backend, scratch.values, count, head_size, weighting, 1.0, lengths)
                               : add_output_lengths(sequence, layer, head, count, *product, scratch, lengths));
  }
  return norms;
}

}  // namespace foldkv
