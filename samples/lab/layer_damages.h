#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/text_samples.h"

namespace foldkv_lab {

struct DamageOptions {
  FoldkvAttention::Options attention;
  int64_t prefix = 768;      // tokens of each text that one layer forgets most of; predictions of the rest are compared
  int64_t kept_tokens = 32;  // that each KV head of this layer is left
};

// For each layer the divergence from the full cache when this layer alone is cut by SnapKV and all others keep every
// token, mean of the texts. A quarter of the tokens kept is SnapKV's window, 8 of 32 as in CompressKV, whose
// importances these figures stand for. (Its authors compare the layer's attention output instead: the same question,
// asked nearer.) progress is told the runs done, one layer of one text each.
[[nodiscard]] absl::StatusOr<std::vector<double>> layer_damages(FoldkvHost& host, const std::vector<TextSample>& texts,
                                                                const DamageOptions& options,
                                                                absl::FunctionRef<void(int64_t)> progress);

}  // namespace foldkv_lab
