#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// One text whose prefix is fed once, to an exact sequence in f32. The rest is then fed to forks of it: as it is, and
// after something was changed in the cache.
class ForkedRuns {
 public:
  // tokens[0, prefix) are fed now, and the rest once to an untouched fork. host and tokens must outlive this object.
  [[nodiscard]] static absl::StatusOr<ForkedRuns> create(FoldkvHost& host, const FoldkvAttention::Options& options,
                                                         std::span<const Token> tokens, int64_t prefix);

  // Logits [rest, vocabulary] of the rest after `change` was made to a fork.
  [[nodiscard]] absl::StatusOr<std::vector<float>> run(
      absl::FunctionRef<absl::Status(foldkv::Sequence& fork)> change) const;
  // What an untouched fork gives.
  [[nodiscard]] const std::vector<float>& reference() const { return reference_; }
  // The mean of KL(reference || logits) over the rest, in nats.
  [[nodiscard]] absl::StatusOr<double> divergence_of(const std::vector<float>& logits) const;
  [[nodiscard]] int64_t rest_count() const { return static_cast<int64_t>(rest_.size()); }

 private:
  ForkedRuns(FoldkvHost& host, std::unique_ptr<FoldkvAttention> prefix, std::span<const Token> rest)
      : host_(host), prefix_(std::move(prefix)), rest_(rest) {}

  FoldkvHost& host_;
  std::unique_ptr<FoldkvAttention> prefix_;
  std::span<const Token> rest_;
  std::vector<float> reference_;
};

}  // namespace foldkv_lab
