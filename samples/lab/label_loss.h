#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

struct LabelLoss {
  std::vector<Token> labels;  // for each row the token whose probability counts
  double loss = 0;            // sum of -log probability of the labels
};

// Where labels come from: one of the two has a number for each row, the other is empty.
struct LabelSource {
  std::span<const Token> given;      // in the vocabulary
  std::span<const double> uniforms;  // in [0, 1): each draws a label from what the model predicts
};

// stream [rows, hidden]: the residual stream after the last layer. stream_gradient [rows, hidden]: receives the
// gradient of the loss; nullptr: not wanted. Logits that are not finite are an error.
[[nodiscard]] absl::StatusOr<LabelLoss> label_loss(const Model& model, const float* stream, int64_t rows,
                                                   const LabelSource& source, float* stream_gradient,
                                                   ThreadPool& threads);

}  // namespace foldkv_lab
