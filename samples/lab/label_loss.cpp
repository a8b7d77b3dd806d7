#include "samples/lab/label_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/aligned_buffer.h"
#include "samples/lab/linear.h"
#include "samples/lab/rms_norm.h"
#include "samples/lab/row_blocks.h"
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab {
namespace {

// Probabilities of one row but for the factor 1 / total.
struct Prediction {
  explicit Prediction(int64_t vocabulary) : weights((vocabulary + 15) / 16 * 16) {}

  FloatBuffer weights;  // the vocabulary in whole vectors
  float largest = 0;    // logit
  double total = 0;
};

void predict(const float* logits, int64_t vocabulary, Prediction* prediction) {
  const VectorKernels& kernels = vector_kernels();
  float* weights = prediction->weights.data();
  const int64_t padded = prediction->weights.size();
  std::copy_n(logits, vocabulary, weights);
  std::fill(weights + vocabulary, weights + padded, -std::numeric_limits<float>::infinity());
  prediction->largest = kernels.maximum(weights, padded);
  kernels.exponentials(weights, padded, prediction->largest);
  prediction->total = 0;
  for (int64_t i = 0; i < vocabulary; ++i) prediction->total += static_cast<double>(weights[i]);
}

// The token at which the sum of probabilities passes `uniform`; when rounding lets none, the last possible one.
Token draw(const Prediction& prediction, int64_t vocabulary, double uniform) {
  const double threshold = uniform * prediction.total;
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < vocabulary; ++i) {
    const double weight = static_cast<double>(prediction.weights.data()[i]);
    if (weight > 0) last = i;
    sum += weight;
    if (sum > threshold) break;
  }
  return static_cast<Token>(last);
}

// Logits become their gradient: probabilities, less one at the label.
void differentiate(const Prediction& prediction, int64_t vocabulary, Token label, float* logits) {
  const float factor = static_cast<float>(1.0 / prediction.total);
  for (int64_t i = 0; i < vocabulary; ++i) logits[i] = prediction.weights.data()[i] * factor;
  logits[label] -= 1.0f;
}

// One call's arguments and what its rows receive.
struct Job {
  const Model& model;
  const float* stream;
  const LabelSource& source;
  float* stream_gradient;
  std::vector<Token> labels;
  std::vector<double> losses;  // NaN: logits were not finite
};

// The row's logits become their gradient.
void finish_row(Job* job, int64_t row, float* logits, Prediction* prediction) {
  const int64_t vocabulary = job->model.shape.vocabulary_size;
  const size_t index = static_cast<size_t>(row);
  if (!std::all_of(logits, logits + vocabulary, [](float logit) { return std::isfinite(logit); })) {
    job->losses[index] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  predict(logits, vocabulary, prediction);
  const Token label =
      job->source.given.empty() ? draw(*prediction, vocabulary, job->source.uniforms[index]) : job->source.given[index];
  job->labels[index] = label;
  job->losses[index] = std::log(prediction->total) + static_cast<double>(prediction->largest - logits[label]);
  if (job->stream_gradient != nullptr) differentiate(*prediction, vocabulary, label, logits);
}

void finish_block(Job* job, int64_t first, int64_t count) {
  const Model& model = job->model;
  const int64_t hidden = model.shape.hidden_size;
  const int64_t vocabulary = model.shape.vocabulary_size;
  ThreadPool own_thread(1);
  FloatBuffer normed(count * hidden);  // later its gradient
  FloatBuffer logits(count * vocabulary);
  Prediction prediction(vocabulary);
  const auto stream_row = [&](int64_t i) { return job->stream + (first + i) * hidden; };
  for (int64_t i = 0; i < count; ++i) {
    rms_norm(stream_row(i), model.final_norm.data(), hidden, model.shape.norm_epsilon, normed.data() + i * hidden);
  }
  linear(model.classifier(), nullptr, normed.data(), count, logits.data(), own_thread);
  for (int64_t i = 0; i < count; ++i) finish_row(job, first + i, logits.data() + i * vocabulary, &prediction);
  if (job->stream_gradient == nullptr) return;
  linear_backward(model.classifier(), logits.data(), count, normed.data(), own_thread);
  float* gradient = job->stream_gradient + first * hidden;
  std::fill_n(gradient, count * hidden, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    rms_norm_backward(stream_row(i), model.final_norm.data(), hidden, model.shape.norm_epsilon,
                      normed.data() + i * hidden, gradient + i * hidden);
  }
}

}  // namespace

absl::StatusOr<LabelLoss> label_loss(const Model& model, const float* stream, int64_t rows, const LabelSource& source,
                                     float* stream_gradient, ThreadPool& threads) {
  const size_t count = static_cast<size_t>(rows);
  Job job{model, stream, source, stream_gradient, std::vector<Token>(count), std::vector<double>(count)};
  for_row_blocks(rows, threads, [&](int64_t first, int64_t block) { finish_block(&job, first, block); });
  LabelLoss result;
  for (const double loss : job.losses) result.loss += loss;
  if (!std::isfinite(result.loss)) return absl::OutOfRangeError("logits hold a number that is not finite");
  result.labels = std::move(job.labels);
  return result;
}

}  // namespace foldkv_lab
