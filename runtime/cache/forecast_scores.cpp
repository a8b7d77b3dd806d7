#include "runtime/cache/forecast_scores.h"

#include <algorithm>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/cache/exact_rows.h"
#include "runtime/cache/token_pages.h"
#include "runtime/policy/expected_attention.h"
#include "runtime/policy/head_reduction.h"

namespace foldkv {
namespace {

// Keys turned at once.
constexpr int64_t kBlockTokens = 256;
constexpr int64_t kNumberBytes = static_cast<int64_t>(sizeof(float));

int64_t block_numbers_bytes(int64_t head_size) {
  return round_up(kBlockTokens * head_size * kNumberBytes, kBlockAlignment);
}

// Keys of one KV head at their positions: [tokens][head size].
StatusOr<std::vector<float>> rotated_keys(const Sequence& sequence, int64_t layer, int64_t head, int64_t first,
                                          std::span<const int32_t> positions, std::byte* workspace) {
  backend::Backend& backend = sequence.runtime().backend();
  const backend::AttentionRules& rules = sequence.shared_model()->data.layers[static_cast<size_t>(layer)].rules;
  std::vector<float> keys(positions.size() * static_cast<size_t>(rules.head_size));
  for (int64_t done = 0; done < std::ssize(positions); done += kBlockTokens) {
    const int64_t count = std::min(kBlockTokens, std::ssize(positions) - done);
    const MutableTensorView rows{workspace, NumberFormat::kF32, count, rules.head_size, rules.head_size};
    FOLDKV_RETURN_IF_ERROR(read_heads(sequence, layer, {head, 1}, backend::Side::kKeys, first + done, rows));
    backend::PrepareHeadsRequest request;
    request.input = rows;
    request.heads = 1;
    request.head_size = rules.head_size;
    request.rotation = rules.rotation;
    request.positions = positions.data() + done;
    request.output = reinterpret_cast<float*>(workspace + block_numbers_bytes(rules.head_size));
    FOLDKV_RETURN_IF_ERROR(backend.prepare_heads(request));
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_host(reinterpret_cast<std::byte*>(keys.data() + done * rules.head_size),
                                                reinterpret_cast<const std::byte*>(request.output),
                                                count * rules.head_size * kNumberBytes));
  }
  return keys;
}

StatusOr<ScoreTable> score_head(const Sequence& sequence, const AttentionRecord& record, int64_t layer, int64_t head,
                                int64_t first, std::span<const int32_t> positions, int64_t next_position,
                                std::byte* workspace) {
  const LayerRules& rules = sequence.model().layer(layer);
  const ScoringRules& scoring = sequence.policy().eviction->policy.scoring;
  QueryForecast forecast = forecast_of(rules, head, record.moments(layer), record.moment_rows(), scoring.covariance);
  if (rules.rotation.has_value()) {
    FOLDKV_ASSIGN_OR_RETURN(forecast, rotate_forecast(forecast, *rules.rotation, next_position, scoring.future_tokens));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<float> keys,
                          rotated_keys(sequence, layer, head, first, positions, workspace));
  FOLDKV_ASSIGN_OR_RETURN(const ScoreTable scores, expected_attention(forecast, keys, 1, rules.attention_scale));
  return reduce_heads(scores, 1, HeadReduction::kMean);
}

}  // namespace

int64_t forecast_workspace(const Model& model, const SequencePolicy& policy) {
  if (policy.eviction == nullptr || policy.eviction->policy.scoring.scorer != Scorer::kExpectedAttention) return 0;
  int64_t bytes = 0;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    bytes = std::max(bytes, 2 * block_numbers_bytes(model.layer(layer).head_size));
  }
  return bytes;
}

StatusOr<ScoreTable> forecast_scores(const Sequence& sequence, const AttentionRecord& record, const ExactSet& set,
                                     TokenRange range, std::byte* workspace) {
  ScoreTable sum(1, range.count);
  if (range.count == 0 || record.moment_rows() == 0) return sum;
  backend::Backend& backend = sequence.runtime().backend();
  const int64_t end = set.token_count + record.new_tokens();
  std::vector<int32_t> positions(static_cast<size_t>(end));
  FOLDKV_RETURN_IF_ERROR(read_positions(backend, set.tokens, 0, end, positions.data()));
  const auto ranged =
      std::span<const int32_t>(positions).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
  for (const int32_t index : set.planes) {
    const ExactPlane& plane = sequence.storage().planes()[static_cast<size_t>(index)];
    for (int64_t head = plane.first_head; head < plane.first_head + plane.head_count; ++head) {
      FOLDKV_ASSIGN_OR_RETURN(const ScoreTable scores, score_head(sequence, record, plane.layer, head, range.first,
                                                                  ranged, int64_t{positions.back()} + 1, workspace));
      std::transform(sum.scores.begin(), sum.scores.end(), scores.scores.begin(), sum.scores.begin(), std::plus<>());
    }
  }
  return sum;
}

}  // namespace foldkv
