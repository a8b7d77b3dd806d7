#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/observe_tokens.h"
#include "runtime/cache/step.h"

namespace foldkv {
namespace {

// The overlap of a feed's rows with a block of rows.
struct Overlap {
  int64_t first = 0;
  int64_t count = 0;
};

Overlap overlap_of(int64_t first, int64_t count, int64_t block_first, int64_t block_count) {
  const int64_t start = std::max(first, block_first);
  return {start, std::min(first + count, block_first + block_count) - start};
}

TensorView dense_rows(const float* data, int64_t rows, int64_t columns) {
  return {reinterpret_cast<const std::byte*>(data), NumberFormat::kF32, rows, columns, columns};
}

MutableTensorView mutable_rows(float* data, int64_t rows, int64_t columns) {
  return {reinterpret_cast<std::byte*>(data), NumberFormat::kF32, rows, columns, columns};
}

template <typename View>
bool is_dense_f32(const View& view) {
  return view.format == NumberFormat::kF32 && view.row_stride == view.column_count;
}

MutableTensorView rows_of(const MutableTensorView& view, int64_t first, int64_t count) {
  return {view.row(first), view.format, count, view.column_count, view.row_stride};
}

Status check_finite(backend::Backend& backend, const TensorView& view, absl::string_view argument) {
  FOLDKV_ASSIGN_OR_RETURN(const bool finite, backend.all_finite(view));
  return finite ? absl::OkStatus() : with_argument(numeric_error("holds NaN or infinity"), argument);
}

}  // namespace

Status Step::attend(int64_t layer, const AttendInput& input) {
  if (committed_) return with_argument(state_error("the step is committed already"), "step");
  if (layer != next_layer_) {
    return with_argument(
        state_error(absl::StrCat("is ", layer, ", expected ", next_layer_, ": layers come in rising order, each once")),
        "layer");
  }
  FOLDKV_RETURN_IF_ERROR(check_input(input));
  // All keys and values first: what cannot be stored must be known before any output is written.
  for (int64_t first = 0; first < rows_; first += kRowBlock) {
    FOLDKV_RETURN_IF_ERROR(rules_.cancellation.check());
    FOLDKV_RETURN_IF_ERROR(append_block(layer, input, {first, std::min(kRowBlock, rows_ - first)}));
  }
  for (Part& part : parts_) FOLDKV_RETURN_IF_ERROR(part.record.begin_layer(layer));
  for (int64_t first = 0; first < rows_; first += kRowBlock) {
    FOLDKV_RETURN_IF_ERROR(rules_.cancellation.check());
    FOLDKV_RETURN_IF_ERROR(attend_block(layer, input, {first, std::min(kRowBlock, rows_ - first)}));
  }
  ++next_layer_;
  return absl::OkStatus();
}

Status Step::check_input(const AttendInput& input) const {
  backend::Backend& backend = runtime_->backend();
  if (rules_.hidden_input) return check_finite(backend, input.hidden, "hidden");
  FOLDKV_RETURN_IF_ERROR(check_finite(backend, input.query, "query"));
  FOLDKV_RETURN_IF_ERROR(check_finite(backend, input.key, "key"));
  return check_finite(backend, input.value, "value");
}

StatusOr<TensorView> Step::hidden_rows(const AttendInput& input, RowBlock block) {
  const TensorView rows = input.hidden.rows(block.first, block.count);
  if (is_dense_f32(rows)) return rows;
  float* dense = scratch_at<float>(plan_.hidden);
  FOLDKV_RETURN_IF_ERROR(runtime_->backend().convert(rows, mutable_rows(dense, rows.row_count, rows.column_count)));
  return dense_rows(dense, rows.row_count, rows.column_count);
}

StatusOr<TensorView> Step::project(const TensorView& weight, const TensorView& bias, const TensorView& x,
                                   int64_t offset) {
  const PhaseTimer timer(runtime_->times(), Phase::kProject);
  backend::ProductRequest request;
  request.x = reinterpret_cast<const float*>(x.data);
  request.weight = weight;
  request.bias = bias;
  request.y = scratch_at<float>(offset);
  request.workspace = scratch_.data() + plan_.product_workspace;
  FOLDKV_RETURN_IF_ERROR(products_.find(product_shape(x.row_count, weight, runtime_->deterministic())).run(request));
  return dense_rows(request.y, x.row_count, weight.row_count);
}

Status Step::append_block(int64_t layer, const AttendInput& input, RowBlock block) {
  const PreparedLayer& prepared = feeds_.front().sequence->shared_model()->data.layers[static_cast<size_t>(layer)];
  TensorView keys;
  TensorView values;
  if (rules_.hidden_input) {
    const LayerWeights& weights = model().weights(layer);
    FOLDKV_ASSIGN_OR_RETURN(const TensorView x, hidden_rows(input, block));
    FOLDKV_ASSIGN_OR_RETURN(keys, project(weights.key, weights.key_bias, x, plan_.key));
    FOLDKV_ASSIGN_OR_RETURN(values, project(weights.value, weights.value_bias, x, plan_.value));
  } else {
    keys = input.key.rows(block.first, block.count);
    values = input.value.rows(block.first, block.count);
  }
  const PhaseTimer timer(runtime_->times(), Phase::kAppend);
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Sequence& sequence = *feeds_[index].sequence;
    const Overlap part = overlap_of(parts_[index].first_row, feeds_[index].token_count, block.first, block.count);
    if (part.count <= 0 || !sequence.storage().stores(layer)) continue;
    backend::AppendRequest request;
    request.head_size = prepared.rules.head_size;
    request.key_norm = prepared.key_norm;
    request.norm_epsilon = prepared.norm_epsilon;
    for (const ExactPlane& plane : sequence.storage().planes_of(layer)) {
      const int64_t published = sequence.storage().set_of(plane).token_count;
      const int64_t column = plane.first_head * prepared.rules.head_size;
      request.keys = keys.rows(part.first - block.first, part.count).columns(column, plane.layout.width);
      request.values = values.rows(part.first - block.first, part.count).columns(column, plane.layout.width);
      request.layout = plane.layout;
      request.region = {plane.pages.pages(), published + feeds_[index].token_count};
      request.first_slot = published + part.first - parts_[index].first_row;
      FOLDKV_RETURN_IF_ERROR(runtime_->backend().append(request));
    }
  }
  return absl::OkStatus();
}

Status Step::attend_block(int64_t layer, const AttendInput& input, RowBlock block) {
  const PreparedLayer& prepared = feeds_.front().sequence->shared_model()->data.layers[static_cast<size_t>(layer)];
  backend::PrepareHeadsRequest heads;
  if (rules_.hidden_input) {
    const LayerWeights& weights = model().weights(layer);
    FOLDKV_ASSIGN_OR_RETURN(const TensorView x, hidden_rows(input, block));
    FOLDKV_ASSIGN_OR_RETURN(heads.input, project(weights.query, weights.query_bias, x, plan_.query_raw));
    FOLDKV_RETURN_IF_ERROR(check_finite(runtime_->backend(), heads.input, "hidden"));
  } else {
    heads.input = input.query.rows(block.first, block.count);
  }
  heads.heads = prepared.rules.query_heads;
  heads.head_size = prepared.rules.head_size;
  heads.norm = prepared.query_norm;
  heads.norm_epsilon = prepared.norm_epsilon;
  heads.rotation = prepared.rules.rotation;
  heads.positions = positions_.data() + block.first;
  heads.output = scratch_at<float>(plan_.query);
  FOLDKV_RETURN_IF_ERROR(runtime_->backend().prepare_heads(heads));
  FOLDKV_RETURN_IF_ERROR(observe_queries(layer, block, heads));

  // Straight into the host's tensor where its form allows it.
  const bool direct = !rules_.projected_output && is_dense_f32(input.output);
  float* context = direct ? reinterpret_cast<float*>(input.output.row(block.first)) : scratch_at<float>(plan_.context);
  const bool wants_sum = input.log_sum_exp.present();
  float* log_sum_exp = nullptr;
  if (wants_sum && is_dense_f32(input.log_sum_exp)) {
    log_sum_exp = reinterpret_cast<float*>(input.log_sum_exp.row(block.first));
  } else if (wants_sum || records_) {
    log_sum_exp = scratch_at<float>(plan_.log_sum_exp);
  }
  FOLDKV_RETURN_IF_ERROR(attend_parts(layer, block, heads.output, context, log_sum_exp));
  if (records_) FOLDKV_RETURN_IF_ERROR(record_attention(layer, block, heads.output, log_sum_exp));
  if (wants_sum && !is_dense_f32(input.log_sum_exp)) {
    FOLDKV_RETURN_IF_ERROR(
        runtime_->backend().convert(dense_rows(log_sum_exp, block.count, input.log_sum_exp.column_count),
                                    rows_of(input.log_sum_exp, block.first, block.count)));
  }
  return direct ? absl::OkStatus() : store_output(layer, input, block, context);
}

Status Step::attend_parts(int64_t layer, RowBlock block, const float* queries, float* context, float* log_sum_exp) {
  const PhaseTimer timer(runtime_->times(), Phase::kAttend);
  // Neighbouring sequences of one profile, plan, number format, division of heads and, where a codec leaves them to the
  // sequence, bases share a call.
  size_t index = 0;
  while (index < feeds_.size()) {
    const Sequence& leader = *feeds_[index].sequence;
    const std::span<const ExactPlane> planes = leader.storage().planes_of(layer);
    const backend::LatentLayer shared = leader.latent_layer(layer);
    attend_sequences_.clear();
    for (; index < feeds_.size(); ++index) {
      const Sequence& sequence = *feeds_[index].sequence;
      const backend::LatentLayer latent = sequence.latent_layer(layer);
      if (sequence.shared_profile() != leader.shared_profile() || sequence.policy().plan != leader.policy().plan ||
          sequence.policy().format != leader.policy().format || latent.key_basis != shared.key_basis ||
          sequence.policy().arithmetic != leader.policy().arithmetic ||
          latent.value_basis != shared.value_basis || sequence.storage().planes_of(layer).size() != planes.size()) {
        break;
      }
      add_views(layer, index, block);
    }
    if (attend_sequences_.empty()) continue;
    backend::AttendRequest request;
    request.rules = leader.shared_model()->data.layers[static_cast<size_t>(layer)].rules;
    request.exact_layout = planes.front().layout;
    request.latent = shared;
    request.arithmetic = leader.policy().arithmetic;
    request.sequences = attend_sequences_;
    request.queries = queries;
    request.context = context;
    request.log_sum_exp = log_sum_exp;
    request.workspace = scratch_.data() + plan_.attend_workspace;
    FOLDKV_RETURN_IF_ERROR(runtime_->backend().attend(request));
  }
  return absl::OkStatus();
}

void Step::add_views(int64_t layer, size_t index, RowBlock block) {
  const Part& part = parts_[index];
  const Overlap rows = overlap_of(part.first_row, feeds_[index].token_count, block.first, block.count);
  if (rows.count <= 0) return;
  const Sequence& sequence = *feeds_[index].sequence;
  for (const ExactPlane& plane : sequence.storage().planes_of(layer)) {
    // Later tokens of the step are beyond the positions of this block's queries: leave them out.
    backend::AttendSequence& view =
        attend_sequences_.emplace_back(sequence.attend_view(plane, layer, rows.first + rows.count - part.first_row));
    view.first_row = rows.first - block.first;
    view.row_count = rows.count;
    view.query_positions = positions_.data() + rows.first;
  }
}

Status Step::record_attention(int64_t layer, RowBlock block, const float* queries, const float* log_sum_exp) {
  const PhaseTimer timer(runtime_->times(), Phase::kScore);
  const LayerRules& rules = model().layer(layer);
  for (size_t index = 0; index < feeds_.size(); ++index) {
    Part& part = parts_[index];
    const Overlap overlap = overlap_of(part.first_row, feeds_[index].token_count, block.first, block.count);
    if (overlap.count <= 0 || !part.record.active()) continue;
    AttentionRecord::Rows rows;
    rows.first = overlap.first - part.first_row;
    rows.count = overlap.count;
    rows.positions = positions_.data() + overlap.first;
    rows.queries = queries + (overlap.first - block.first) * rules.query_width();
    rows.log_sum_exp = log_sum_exp + (overlap.first - block.first) * rules.query_heads;
    FOLDKV_RETURN_IF_ERROR(part.record.record(layer, rows, scratch_.data() + plan_.attend_workspace));
  }
  return absl::OkStatus();
}

// Hands queries before rotation to the records that want them.
Status Step::observe_queries(int64_t layer, RowBlock block, backend::PrepareHeadsRequest heads) {
  if (std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.record.forecasts(); })) {
    return absl::OkStatus();
  }
  const PhaseTimer timer(runtime_->times(), Phase::kScore);
  heads.rotation = {};
  heads.output = scratch_at<float>(plan_.query_plain);
  FOLDKV_RETURN_IF_ERROR(runtime_->backend().prepare_heads(heads));
  for (size_t index = 0; index < feeds_.size(); ++index) {
    Part& part = parts_[index];
    const Overlap overlap = overlap_of(part.first_row, feeds_[index].token_count, block.first, block.count);
    if (overlap.count <= 0 || !part.record.forecasts()) continue;
    part.record.observe_queries(layer, overlap.first - part.first_row, overlap.count,
                                heads.output + (overlap.first - block.first) * model().layer(layer).query_width());
  }
  return absl::OkStatus();
}

Status Step::store_output(int64_t layer, const AttendInput& input, RowBlock block, float* context) {
  TensorView result = dense_rows(context, block.count, model().layer(layer).query_width());
  if (rules_.projected_output) {
    const LayerWeights& weights = model().weights(layer);
    FOLDKV_ASSIGN_OR_RETURN(result, project(weights.output, weights.output_bias, result, plan_.output));
  }
  return runtime_->backend().convert(result, rows_of(input.output, block.first, block.count));
}

// Hands what the step appended to the calibrators of its sequences, group by group.
Status Step::observe() {
  // A commit that is tried again would observe tokens twice.
  absl::Cleanup spoil = [&] {
    for (const Feed& feed : feeds_) {
      if (feed.sequence->calibrator() != nullptr) feed.sequence->calibrator()->spoil();
    }
  };
  for (size_t index = 0; index < feeds_.size(); ++index) {
    const Sequence& sequence = *feeds_[index].sequence;
    if (sequence.calibrator() == nullptr) continue;
    FOLDKV_RETURN_IF_ERROR(observe_tokens(sequence, sequence.storage().token_count(), feeds_[index].token_count));
  }
  std::move(spoil).Cancel();
  return absl::OkStatus();
}

}  // namespace foldkv
