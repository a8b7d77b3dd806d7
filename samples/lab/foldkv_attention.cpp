#include "samples/lab/foldkv_attention.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/linear.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

void grow(FloatBuffer* buffer, int64_t size) {
  if (buffer->size() < size) *buffer = FloatBuffer(size);
}

// Heads that stand side by side in rows of `row_width` numbers.
foldkv_tensor heads_tensor(const float* data, int64_t rows, int64_t heads, int64_t head_size, int64_t row_width) {
  foldkv_tensor tensor = foldkv::tensor(data, {rows, heads, head_size});
  tensor.strides[0] = row_width;
  tensor.strides[1] = head_size;
  tensor.strides[2] = 1;
  return tensor;
}

}  // namespace

absl::StatusOr<foldkv::Sequence> FoldkvAttention::create_sequence(FoldkvHost& host, const foldkv::Profile* profile,
                                                                   const Options& options) {
  foldkv_sequence_options sequence_options = options.sequence;
  sequence_options.plan = options.plan.empty() ? nullptr : options.plan.c_str();
  foldkv_eviction eviction = {};
  if (options.eviction.has_value()) {
    eviction = options.eviction->view();
    sequence_options.eviction = &eviction;
  }
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Sequence sequence, "creating a sequence",
                              foldkv::Sequence::create(host.runtime(), host.foldkv_model(), profile, sequence_options));
  return sequence;
}

absl::StatusOr<std::unique_ptr<FoldkvAttention>> FoldkvAttention::create(FoldkvHost& host,
                                                                         const foldkv::Profile* profile,
                                                                         const Options& options) {
  LAB_ASSIGN_OR_RETURN(foldkv::Sequence sequence, create_sequence(host, profile, options));
  return absl::WrapUnique(new FoldkvAttention(host, profile, options, std::move(sequence)));
}

absl::StatusOr<std::unique_ptr<FoldkvAttention>> FoldkvAttention::fork() const {
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Sequence sequence, "forking a sequence", sequence_.fork());
  auto copy = absl::WrapUnique(new FoldkvAttention(host_, profile_, options_, std::move(sequence)));
  copy->tokens_ = tokens_;
  return copy;
}

absl::Status FoldkvAttention::begin_step(int64_t tokens, bool prompt_continues) {
  step_.reset();
  foldkv_feed feed = foldkv::feed(sequence_, tokens, prompt_continues ? uint32_t{FOLDKV_FEED_CONTINUES} : 0u);
  std::vector<int64_t> positions;
  if (jump_.has_value()) {
    positions.resize(static_cast<size_t>(tokens));
    std::iota(positions.begin(), positions.end(), *jump_);
    feed.positions = positions.data();
  }
  foldkv_step_options options = foldkv::init<foldkv_step_options>();
  const bool hidden = options_.input == FoldkvInput::kHidden;
  options.input = hidden ? FOLDKV_INPUT_HIDDEN : FOLDKV_INPUT_QKV;
  options.output = hidden ? FOLDKV_OUTPUT_PROJECTED : FOLDKV_OUTPUT_CONTEXT;
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Step step, absl::StrCat("beginning a step of ", tokens, " tokens"),
                              foldkv::Step::begin(host_.runtime(), {&feed, 1}, options));
  step_.emplace(std::move(step));
  step_tokens_ = tokens;
  const ModelShape& shape = host_.model().shape;
  if (!hidden) {
    grow(&projected_, tokens * (shape.query_width() + 2 * shape.kv_width()));
    grow(&context_, tokens * shape.query_width());
  }
  return absl::OkStatus();
}

absl::Status FoldkvAttention::attend(int64_t layer, const float* normed, float* output) {
  if (options_.input == FoldkvInput::kHidden) return attend_hidden(layer, normed, output);
  return attend_qkv(layer, normed, output);
}

absl::Status FoldkvAttention::attend_hidden(int64_t layer, const float* normed, float* output) {
  const int64_t hidden = host_.model().shape.hidden_size;
  foldkv_attend attend = foldkv::init<foldkv_attend>();
  attend.hidden = foldkv::tensor(normed, {step_tokens_, hidden});
  attend.output = foldkv::tensor(output, {step_tokens_, hidden});
  LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("attention of layer ", layer),
                             step_->attend(static_cast<int32_t>(layer), attend));
  return absl::OkStatus();
}

absl::Status FoldkvAttention::attend_qkv(int64_t layer, const float* normed, float* output) {
  const ModelShape& shape = host_.model().shape;
  const ModelLayer& weights = host_.model().layers[static_cast<size_t>(layer)];
  const float* bias = weights.query_key_value_bias.empty() ? nullptr : weights.query_key_value_bias.data();
  linear(weights.query_key_value, bias, normed, step_tokens_, projected_.data(), host_.threads());
  const int64_t row_width = shape.query_width() + 2 * shape.kv_width();
  const float* keys = projected_.data() + shape.query_width();
  foldkv_attend attend = foldkv::init<foldkv_attend>();
  attend.query = heads_tensor(projected_.data(), step_tokens_, shape.query_heads, shape.head_size, row_width);
  attend.key = heads_tensor(keys, step_tokens_, shape.kv_heads, shape.head_size, row_width);
  attend.value = heads_tensor(keys + shape.kv_width(), step_tokens_, shape.kv_heads, shape.head_size, row_width);
  attend.output = foldkv::tensor(context_.data(), {step_tokens_, shape.query_heads, shape.head_size});
  LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("attention of layer ", layer),
                             step_->attend(static_cast<int32_t>(layer), attend));
  linear(weights.attention_output, nullptr, context_.data(), step_tokens_, output, host_.threads());
  return absl::OkStatus();
}

absl::Status FoldkvAttention::commit_step() {
  LAB_RETURN_IF_FOLDKV_ERROR("committing a step", step_->commit());
  step_.reset();
  jump_.reset();
  tokens_ += step_tokens_;
  return absl::OkStatus();
}

absl::Status FoldkvAttention::clear() {
  step_.reset();
  jump_.reset();
  LAB_ASSIGN_OR_RETURN(foldkv::Sequence fresh, create_sequence(host_, profile_, options_));
  sequence_ = std::move(fresh);
  tokens_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<foldkv_sequence_stats> FoldkvAttention::stats() const {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_sequence_stats stats, "reading the sequence's figures", sequence_.stats());
  return stats;
}

}  // namespace foldkv_lab
