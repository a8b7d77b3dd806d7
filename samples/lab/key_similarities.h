#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

struct SimilarityOptions {
  FoldkvAttention::Options attention;
  int64_t prefix = 768;  // tokens of each text that are fed
  int64_t sinks = 4;     // first tokens, which both runs see
};

// EpiCache's question for each layer: how far a token's key depends on what came long before it. The cosine between
// keys, before rotation, of a prefix's second half when all of the prefix is fed, and when only its sinks and this half
// are, at their own positions; mean over tokens, heads and texts. (Its authors go through blocks of 4,096 that overlap
// by half.) progress is told the texts done.
[[nodiscard]] absl::StatusOr<std::vector<double>> key_similarities(FoldkvHost& host,
                                                                   const std::vector<TextSample>& texts,
                                                                   const SimilarityOptions& options,
                                                                   absl::FunctionRef<void(int64_t)> progress);

// The mean cosine between rows of `size` numbers; a row of zeros is like no other.
[[nodiscard]] double mean_cosine(std::span<const float> a, std::span<const float> b, int64_t size);

}  // namespace foldkv_lab
