#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

// KVSharer's search (arXiv 2410.18517; methods.md section 6): which layers read another layer's keys and values.

struct LayerPair {
  int32_t source = 0;  // the earlier layer
  int32_t layer = 0;
  double distance = 0;
};

// All pairs of layers, those whose mean caches are farthest apart first (equal ones: lower layers first). caches: the mean
// keys and the mean values of each layer; a pair's distance is the mean of the two Euclidean distances.
struct MeanCache {
  std::vector<double> keys;
  std::vector<double> values;
};
[[nodiscard]] std::vector<LayerPair> rank_layer_pairs(const std::vector<MeanCache>& caches);

struct SharingOptions {
  int64_t layers = 4;      // that shall read another one
  double threshold = 0.5;  // least cosine between the final hidden states with and without sharing
};

// Goes through the pairs and lets the later layer read the earlier one where the similarity stays above the threshold,
// until enough layers share. A layer that shares already is passed over; chains are followed to the layer that reads its
// own. Result: the source of each layer. An error when the pairs do not suffice.
[[nodiscard]] absl::StatusOr<std::vector<int32_t>> choose_sharing(
    int32_t layer_count, const std::vector<LayerPair>& pairs, const SharingOptions& options,
    absl::FunctionRef<absl::StatusOr<double>(const std::vector<int32_t>& sources)> similarity);

// The search on a model: caches and hidden states are means over the samples.
[[nodiscard]] absl::StatusOr<std::vector<int32_t>> share_layers(FoldkvHost& host,
                                                                const std::vector<TextSample>& samples,
                                                                const SharingOptions& options,
                                                                absl::FunctionRef<void(int64_t)> progress);

[[nodiscard]] absl::StatusOr<foldkv::Profile> sharing_profile(const FoldkvHost& host,
                                                              const std::vector<int32_t>& sources);

}  // namespace foldkv_lab
