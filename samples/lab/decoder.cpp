#include "samples/lab/decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "samples/lab/gated_unit.h"
#include "samples/lab/linear.h"
#include "samples/lab/rms_norm.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

void grow(FloatBuffer* buffer, int64_t size) {
  if (buffer->size() < size) *buffer = FloatBuffer(size);
}

}  // namespace

Decoder::Decoder(const Model& model, Attention& attention, ThreadPool& threads)
    : model_(model), attention_(attention), threads_(threads) {}

absl::Status Decoder::feed(std::span<const Token> tokens, int64_t logit_rows, std::vector<float>* logits, int64_t chunk,
                           absl::FunctionRef<void(int64_t)> progress) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (logit_rows < 0 || logit_rows > count) {
    return absl::InvalidArgumentError(absl::StrCat("logits of ", logit_rows, " of ", count, " tokens"));
  }
  for (const Token token : tokens) {
    if (token < 0 || token >= model_.shape.vocabulary_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is outside the vocabulary of ", model_.shape.vocabulary_size));
    }
  }
  logits->resize(static_cast<size_t>(logit_rows * model_.shape.vocabulary_size));
  const int64_t first_logit = count - logit_rows;
  for (int64_t start = 0; start < count; start += chunk) {
    const int64_t end = std::min(start + chunk, count);
    LAB_RETURN_IF_ERROR(
        run_step(tokens.subspan(static_cast<size_t>(start), static_cast<size_t>(end - start)), end < count));
    if (end > first_logit) {
      const int64_t first = std::max(start, first_logit);
      compute_logits(first - start, end - first, logits->data() + (first - first_logit) * model_.shape.vocabulary_size);
    }
    progress(end);
  }
  return absl::OkStatus();
}

absl::Status Decoder::run_step(std::span<const Token> tokens, bool prompt_continues) {
  LAB_RETURN_IF_ERROR(attention_.begin_step(static_cast<int64_t>(tokens.size()), prompt_continues));
  absl::Status status = run_layers(tokens);
  if (status.ok()) status = attention_.commit_step();
  if (!status.ok()) attention_.roll_back_step();
  return status;
}

absl::Status Decoder::run_layers(std::span<const Token> tokens) {
  const int64_t rows = static_cast<int64_t>(tokens.size());
  const int64_t hidden = model_.shape.hidden_size;
  const int64_t feed_forward_size = model_.shape.feed_forward_size;
  grow(&residual_, rows * hidden);
  grow(&normed_, rows * hidden);
  grow(&branch_, rows * hidden);
  grow(&gates_, rows * 2 * feed_forward_size);
  grow(&activated_, rows * feed_forward_size);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(model_.embedding.row(tokens[static_cast<size_t>(row)]), hidden, residual_.data() + row * hidden);
  }
  for (int64_t layer = 0; layer < model_.shape.layer_count; ++layer) {
    const ModelLayer& weights = model_.layers[static_cast<size_t>(layer)];
    normalize(weights.attention_norm, rows);
    LAB_RETURN_IF_ERROR(attention_.attend(layer, normed_.data(), branch_.data()));
    for (int64_t i = 0; i < rows * hidden; ++i) residual_.data()[i] += branch_.data()[i];
    feed_forward(weights, rows);
  }
  return absl::OkStatus();
}

void Decoder::feed_forward(const ModelLayer& layer, int64_t rows) {
  const int64_t hidden = model_.shape.hidden_size;
  const int64_t size = model_.shape.feed_forward_size;
  normalize(layer.feed_forward_norm, rows);
  linear(layer.gate_and_up, nullptr, normed_.data(), rows, gates_.data(), threads_);
  constexpr int64_t kSlice = 512;  // numbers of one row that one task activates
  const int64_t slices = (size + kSlice - 1) / kSlice;
  constexpr int64_t kActivationWork = 32;  // an exponential and a division cost about as much as this many products
  threads_.parallel_for(rows * slices, rows * size * kActivationWork, [&](int64_t task) {
    const int64_t row = task / slices;
    const int64_t first = task % slices * kSlice;
    const float* gate = gates_.data() + row * 2 * size;
    const float* up = gate + size;
    float* activated = activated_.data() + row * size;
    gated_unit(gate + first, up + first, std::min(kSlice, size - first), activated + first);
  });
  linear(layer.down, nullptr, activated_.data(), rows, branch_.data(), threads_);
  for (int64_t i = 0; i < rows * hidden; ++i) residual_.data()[i] += branch_.data()[i];
}

void Decoder::normalize(const std::vector<float>& weight, int64_t rows) {
  const int64_t hidden = model_.shape.hidden_size;
  for (int64_t row = 0; row < rows; ++row) {
    rms_norm(residual_.data() + row * hidden, weight.data(), hidden, model_.shape.norm_epsilon,
             normed_.data() + row * hidden);
  }
}

// Of the last step's rows; a row's logits need no other row.
void Decoder::compute_logits(int64_t first_row, int64_t rows, float* logits) {
  const int64_t hidden = model_.shape.hidden_size;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    rms_norm(residual_.data() + row * hidden, model_.final_norm.data(), hidden, model_.shape.norm_epsilon,
             normed_.data() + row * hidden);
  }
  const float* const last = normed_.data() + (first_row + rows - 1) * hidden;
  final_hidden_state_.assign(last, last + hidden);
  linear(model_.classifier(), nullptr, normed_.data() + first_row * hidden, rows, logits, threads_);
}

}  // namespace foldkv_lab
