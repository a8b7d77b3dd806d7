#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/aligned_buffer.h"
#include "samples/lab/attention.h"
#include "samples/lab/eviction.h"
#include "samples/lab/foldkv_host.h"

namespace foldkv_lab {

// What the library is given for each layer.
enum class FoldkvInput {
  kHidden,  // hidden states: the library projects them with the bound weights and projects its output
  kQkv,     // queries, keys and values before rotation: the lab does both projections
};

// Attention through libfoldkv: one sequence of its cache.
class FoldkvAttention final : public Attention {
 public:
  struct Options {
    FoldkvInput input = FoldkvInput::kHidden;
    foldkv_sequence_options sequence = {};  // its plan and eviction are set from those below
    std::string plan;                       // empty: the profile's first
    std::optional<Eviction> eviction;       // nullopt: every token stays
  };

  // host and profile (nullptr: everything stays exact) must outlive this object.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<FoldkvAttention>> create(FoldkvHost& host,
                                                                               const foldkv::Profile* profile,
                                                                               const Options& options);

  // An independent copy of the cache. State error while a step is open.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<FoldkvAttention>> fork() const;

  // The first token of the next step stands at this position, beyond all others, and what follows behind it.
  void jump_to(int64_t position) { jump_ = position; }

  [[nodiscard]] absl::Status begin_step(int64_t tokens, bool prompt_continues) override;
  [[nodiscard]] absl::Status attend(int64_t layer, const float* normed, float* output) override;
  [[nodiscard]] absl::Status commit_step() override;
  void roll_back_step() override { step_.reset(); }
  [[nodiscard]] int64_t token_count() const override { return tokens_; }
  [[nodiscard]] absl::Status clear() override;

  [[nodiscard]] foldkv::Sequence& sequence() { return sequence_; }
  [[nodiscard]] const foldkv::Sequence& sequence() const { return sequence_; }
  [[nodiscard]] absl::StatusOr<foldkv_sequence_stats> stats() const;

 private:
  FoldkvAttention(FoldkvHost& host, const foldkv::Profile* profile, const Options& options, foldkv::Sequence sequence)
      : host_(host), profile_(profile), options_(options), sequence_(std::move(sequence)) {}

  [[nodiscard]] static absl::StatusOr<foldkv::Sequence> create_sequence(FoldkvHost& host,
                                                                        const foldkv::Profile* profile,
                                                                        const Options& options);
  [[nodiscard]] absl::Status attend_hidden(int64_t layer, const float* normed, float* output);
  [[nodiscard]] absl::Status attend_qkv(int64_t layer, const float* normed, float* output);

  FoldkvHost& host_;
  const foldkv::Profile* profile_;
  Options options_;
  foldkv::Sequence sequence_;
  std::optional<foldkv::Step> step_;
  std::optional<int64_t> jump_;
  int64_t tokens_ = 0;
  int64_t step_tokens_ = 0;
  FloatBuffer projected_;  // [tokens, query width + 2 * kv width]
  FloatBuffer context_;    // [tokens, query width]
};

}  // namespace foldkv_lab
