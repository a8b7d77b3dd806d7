#include "runtime/cache/attention_record.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/cache/eviction_needs.h"
#include "runtime/cache/step_scratch.h"
#include "runtime/cache/token_pages.h"
#include "runtime/memory/device_copy.h"

namespace foldkv {
namespace {

constexpr int64_t kNumberBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

AttentionRecord::AttentionRecord(const Sequence& sequence, int64_t new_tokens)
    : sequence_(&sequence),
      plan_(plan_record(sequence.model(), sequence.policy(), sequence.storage(),
                        {new_tokens, sequence.prompt_open(), sequence.window().rows})),
      new_tokens_(new_tokens) {
  if (scores_rows()) thresholds_.resize(static_cast<size_t>(std::min(new_tokens, kRowBlock)));
}

Status AttentionRecord::begin(Allocator& allocator, std::byte* scratch) {
  numbers_ = reinterpret_cast<float*>(scratch);
  FOLDKV_RETURN_IF_ERROR(fill_lists());
  FOLDKV_RETURN_IF_ERROR(begin_moments(allocator));
  if (plan_.window_rows == 0) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(window_.memory, Block::allocate(allocator, Role::kPositions, plan_.window_bytes()));
  window_.room = plan_.window_rows;
  window_.rows = plan_.window_rows;
  return copy_earlier_rows();
}

Status AttentionRecord::fill_lists() {
  const SequenceStorage& storage = sequence_->storage();
  backend::Backend& backend = sequence_->runtime().backend();
  std::vector<float> numbers;
  for (size_t index = 0; index < plan_.lists.size(); ++index) {
    const RecordPlan::List& list = plan_.lists[index];
    if (list.tokens == 0) continue;
    const ExactSet& set = storage.exact_sets()[index];
    numbers.assign(static_cast<size_t>(list.tokens), 0.0f);
    if (remembers_scores(sequence_->policy().eviction->policy)) {
      if (set.grouped) {
        FOLDKV_RETURN_IF_ERROR(
            read_scores(backend, storage.latent_set_of(set.group).tokens, 0, list.latents, numbers.data()));
      }
      FOLDKV_RETURN_IF_ERROR(read_scores(backend, set.tokens, 0, set.token_count, numbers.data() + list.latents));
    }
    FOLDKV_RETURN_IF_ERROR(backend.copy_to_device(reinterpret_cast<std::byte*>(numbers_ + list.offset),
                                                  reinterpret_cast<const std::byte*>(numbers.data()),
                                                  list.tokens * kNumberBytes));
  }
  return absl::OkStatus();
}

Status AttentionRecord::copy_earlier_rows() {
  const QueryWindow& earlier = sequence_->window();
  const int64_t rows = std::max<int64_t>(0, plan_.window_rows - new_tokens_);
  if (rows == 0) return absl::OkStatus();
  for (int64_t layer = 0; layer < sequence_->model().layer_count(); ++layer) {
    if (plan_.window_offsets[static_cast<size_t>(layer)] < 0) continue;
    const int64_t skipped = earlier.rows - rows;
    const int64_t width = sequence_->model().layer(layer).query_width();
    const int64_t heads = sequence_->model().layer(layer).query_heads;
    FOLDKV_RETURN_IF_ERROR(
        copy_numbers(queries_in(window_, layer), queries_in(earlier, layer) + skipped * width, rows * width));
    FOLDKV_RETURN_IF_ERROR(
        copy_numbers(sums_in(window_, layer), sums_in(earlier, layer) + skipped * heads, rows * heads));
  }
  return absl::OkStatus();
}

Status AttentionRecord::begin_layer(int64_t layer) {
  const bool again = layer == layer_;
  layer_ = layer;
  if (again && forecasts()) copy_moments(layer);
  if (!scores_rows()) return absl::OkStatus();
  float* saved = numbers_ + plan_.list_numbers;
  for (const ExactPlane& plane : sequence_->storage().planes_of(layer)) {
    const RecordPlan::List& list = plan_.list_of(sequence_->storage(), plane);
    float* const numbers = numbers_ + list.offset;
    FOLDKV_RETURN_IF_ERROR(again ? copy_numbers(numbers, saved, list.tokens)
                                 : copy_numbers(saved, numbers, list.tokens));
    saved += list.tokens;
  }
  return absl::OkStatus();
}

Status AttentionRecord::record(int64_t layer, const Rows& rows, std::byte* workspace) {
  if (plan_.window_rows > 0) FOLDKV_RETURN_IF_ERROR(keep_queries(layer, rows));
  if (!scores_rows() || !sequence_->storage().stores(layer)) return absl::OkStatus();
  for (const ExactPlane& plane : sequence_->storage().planes_of(layer)) {
    FOLDKV_RETURN_IF_ERROR(score_view(layer, plane, rows, workspace));
  }
  return absl::OkStatus();
}

Status AttentionRecord::score_view(int64_t layer, const ExactPlane& plane, const Rows& rows, std::byte* workspace) {
  const RecordPlan::List& list = plan_.list_of(sequence_->storage(), plane);
  if (list.tokens == 0) return absl::OkStatus();
  const EvictionPolicy& policy = sequence_->policy().eviction->policy;
  backend::ScoreRequest request;
  request.rules = sequence_->shared_model()->data.layers[static_cast<size_t>(layer)].rules;
  request.exact_layout = plane.layout;
  request.latent = sequence_->latent_layer(layer);
  request.sequence = sequence_->attend_view(plane, layer, rows.first + rows.count);
  request.sequence.row_count = rows.count;
  request.sequence.query_positions = rows.positions;
  request.queries = rows.queries;
  request.log_sum_exp = rows.log_sum_exp;
  if (policy.scoring.scorer == Scorer::kLastRow) {
    // The newest row alone decides.
    if (rows.first + rows.count < new_tokens_) return absl::OkStatus();
    request.sequence.first_row = rows.count - 1;
    request.sequence.row_count = 1;
    request.sequence.query_positions += rows.count - 1;
  }
  request.heads = score_heads(policy, sequence_->storage().set_of(plane));
  float* const numbers = numbers_ + list.offset;
  const ScoringRules& scoring = policy.scoring;
  if (scoring.rows == RowReduction::kNegatedBelow) {
    const int64_t before = list.tokens - new_tokens_ + rows.first;
    for (int64_t row = 0; row < rows.count; ++row) {
      thresholds_[static_cast<size_t>(row)] = 1.0f / static_cast<float>(before + row + 1);
    }
    request.thresholds = thresholds_.data();
    request.below = numbers;
  } else {
    (scoring.rows == RowReduction::kMaximum ? request.maxima : request.sums) = numbers;
  }
  request.list_stride = list.tokens;
  request.workspace = workspace;
  return sequence_->runtime().backend().score(request);
}

Status AttentionRecord::keep_queries(int64_t layer, const Rows& rows) {
  if (plan_.window_offsets[static_cast<size_t>(layer)] < 0) return absl::OkStatus();
  // Row r of the feed is row r - dropped of the window.
  const int64_t dropped = new_tokens_ - plan_.window_rows;
  const int64_t first = std::max(rows.first, dropped);
  const int64_t count = rows.first + rows.count - first;
  if (count <= 0) return absl::OkStatus();
  const int64_t width = sequence_->model().layer(layer).query_width();
  const int64_t heads = sequence_->model().layer(layer).query_heads;
  const int64_t skipped = first - rows.first;
  FOLDKV_RETURN_IF_ERROR(copy_numbers(queries_in(window_, layer) + (first - dropped) * width,
                                      rows.queries + skipped * width, count * width));
  return copy_numbers(sums_in(window_, layer) + (first - dropped) * heads, rows.log_sum_exp + skipped * heads,
                      count * heads);
}

Status AttentionRecord::begin_moments(Allocator& allocator) {
  if (!forecasts()) return absl::OkStatus();
  FOLDKV_ASSIGN_OR_RETURN(moments_.memory, Block::allocate(allocator, Role::kPositions, plan_.moment_bytes()));
  moments_.rows = sequence_->moments().rows + new_tokens_ - sink_rows();
  for (int64_t layer = 0; layer < sequence_->model().layer_count(); ++layer) copy_moments(layer);
  return absl::OkStatus();
}

// Of the feed: sinks, whose queries do not enter the forecast.
int64_t AttentionRecord::sink_rows() const {
  const int64_t sinks = sequence_->policy().eviction->policy.selection.sink_tokens;
  return std::clamp<int64_t>(sinks - sequence_->storage().token_count(), 0, new_tokens_);
}

void AttentionRecord::copy_moments(int64_t layer) {
  const int64_t offset = plan_.moment_offsets[static_cast<size_t>(layer)];
  if (offset < 0) return;
  float* const target = reinterpret_cast<float*>(moments_.memory.data()) + offset;
  const int64_t numbers = moment_numbers(sequence_->model().layer(layer));
  const QueryMoments& earlier = sequence_->moments();
  if (earlier.rows == 0) {
    std::fill_n(target, numbers, 0.0f);
  } else {
    std::copy_n(reinterpret_cast<const float*>(earlier.memory.data()) + offset, numbers, target);
  }
}

void AttentionRecord::observe_queries(int64_t layer, int64_t first, int64_t count, const float* queries) {
  const int64_t offset = plan_.moment_offsets[static_cast<size_t>(layer)];
  const LayerRules& rules = sequence_->model().layer(layer);
  const int64_t skipped = std::clamp<int64_t>(sink_rows() - first, 0, count);
  if (offset < 0 || skipped == count) return;
  const int64_t before = sequence_->moments().rows + std::max<int64_t>(0, first - sink_rows());
  add_queries(rules, queries + skipped * rules.query_width(), count - skipped, before,
              reinterpret_cast<float*>(moments_.memory.data()) + offset);
}

const float* AttentionRecord::moments(int64_t layer) const {
  const QueryMoments& source = forecasts() ? moments_ : sequence_->moments();
  return reinterpret_cast<const float*>(source.memory.data()) + plan_.moment_offsets[static_cast<size_t>(layer)];
}

int64_t AttentionRecord::moment_rows() const { return forecasts() ? moments_.rows : sequence_->moments().rows; }

StatusOr<std::vector<float>> AttentionRecord::scores(size_t exact_set) const {
  const RecordPlan::List& list = plan_.lists[exact_set];
  std::vector<float> numbers(static_cast<size_t>(list.tokens));
  FOLDKV_RETURN_IF_ERROR(sequence_->runtime().backend().copy_to_host(
      reinterpret_cast<std::byte*>(numbers.data()), reinterpret_cast<const std::byte*>(numbers_ + list.offset),
      list.tokens * kNumberBytes));
  return numbers;
}

float* AttentionRecord::queries_in(const QueryWindow& window, int64_t layer) const {
  return reinterpret_cast<float*>(window.memory.data()) +
         plan_.window_offsets[static_cast<size_t>(layer)] * window.room;
}

float* AttentionRecord::sums_in(const QueryWindow& window, int64_t layer) const {
  return queries_in(window, layer) + window.room * sequence_->model().layer(layer).query_width();
}

Status AttentionRecord::copy_numbers(float* to, const float* from, int64_t count) const {
  return copy_on_device(sequence_->runtime().backend(), reinterpret_cast<std::byte*>(to),
                        reinterpret_cast<const std::byte*>(from), count * kNumberBytes);
}

}  // namespace foldkv
