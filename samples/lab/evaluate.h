#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/codec.h"
#include "samples/lab/drift.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

struct EvaluationOptions {
  int64_t prefix = 768;  // tokens that are fed exactly and then compressed
  int64_t feed = 1;      // tokens per step of the rest
};

// Means over the fed positions, losses and perplexities over those whose next token the window holds.
struct EvaluationFigures {
  int64_t windows = 0;
  int64_t positions = 0;
  double kl = 0;              // KL(full || compressed), nats
  double top1_agreement = 0;  // share of positions
  double full_loss = 0;       // nats per token
  double compressed_loss = 0;
  EnergyShares energy;        // lost by the compression of the prefix
  std::vector<double> window_kl;  // the kl of each window, so that codecs can be compared window by window

  [[nodiscard]] double loss_difference() const { return compressed_loss - full_loss; }
  [[nodiscard]] double full_perplexity() const;
  [[nodiscard]] double compressed_perplexity() const;
};

// Bytes of one window after its prefix was compressed, and after all of it was fed.
struct EvaluationBytes {
  foldkv_sequence_stats after_prefix = {};
  foldkv_sequence_stats after_window = {};
};

struct CodecEvaluation {
  std::string codec;      // its name
  EvaluationFigures all;  // windows weigh by their text: the mean of the texts' means
  std::vector<std::pair<std::string, EvaluationFigures>> texts;
  EnergyShares expected_energy;  // as far as the profile knows
  EvaluationBytes bytes;  // equal in all windows, since they are equally long
  double seconds = 0;
};

struct Evaluation {
  std::vector<CodecEvaluation> codecs;  // in the order they were given
  double full_seconds = 0;              // of the full cache, which runs once for all codecs
};

// The protocol of every quality figure: in each window a prefix is fed exactly and all of it but sinks and recent
// tokens is compressed; then the rest is fed, teacher-forced, against the cache of each codec and against the lab's own
// full cache, and the distributions of the next token are compared. All windows have the same length.
// progress is told the runs done: one window through one codec each.
[[nodiscard]] absl::StatusOr<Evaluation> evaluate(FoldkvHost& host, const std::vector<Codec>& codecs,
                                                  const std::vector<TextSample>& windows,
                                                  const EvaluationOptions& options,
                                                  absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
