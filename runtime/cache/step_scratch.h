#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cache/runtime.h"
#include "runtime/cache/sequence_storage.h"

namespace foldkv {

// Rows that pass through projections and attention at once: scratch stays small however long the prompt is.
inline constexpr int64_t kRowBlock = 512;

// What the scratch of a step depends on.
struct ScratchNeeds {
  bool hidden_input = false;
  bool projected_output = false;
  int64_t rows = 0;           // new tokens of all sequences
  int64_t views = 0;          // that one layer's attention takes: of each sequence one for each of the layer's planes
  int64_t total_tokens = 0;   // cached tokens of all views, the new ones included
  bool records = false;       // attention is written down for eviction policies
  bool forecasts = false;     // and queries before rotation
  int64_t record_bytes = 0;   // what is written down
  int64_t commit_bytes = 0;   // workspace of compression and eviction at commit

  void add_views(const SequenceStorage& storage, int64_t new_tokens);
};

// Of the layer that has the most.
[[nodiscard]] int64_t most_views(const SequenceStorage& storage);

// Offsets into one scratch block; row buffers hold kRowBlock rows at most.
struct ScratchPlan {
  int64_t block_rows = 0;
  int64_t tail_rows = 0;  // rows of the last, shorter block; 0: none
  int64_t hidden = 0;
  int64_t query_raw = 0;
  int64_t query = 0;
  int64_t query_plain = 0;  // before rotation
  int64_t key = 0;
  int64_t value = 0;
  int64_t context = 0;
  int64_t output = 0;
  int64_t log_sum_exp = 0;
  int64_t product_workspace = 0;
  int64_t attend_workspace = 0;  // of scoring too
  int64_t records = 0;
  int64_t bytes = 0;
};

// The products of a step, one for each shape that occurs in its layers.
class ProductSet {
 public:
  [[nodiscard]] Status add(backend::Backend& backend, const backend::ProductShape& shape);
  [[nodiscard]] backend::Product& find(const backend::ProductShape& shape) const;
  [[nodiscard]] int64_t workspace_bytes() const;

 private:
  std::vector<std::pair<backend::ProductShape, std::unique_ptr<backend::Product>>> products_;
};

[[nodiscard]] backend::ProductShape product_shape(int64_t rows, const TensorView& weight, bool deterministic);

// Makes the products (none without hidden input or projected output).
[[nodiscard]] StatusOr<ProductSet> make_products(const Runtime& runtime, const Model& model, const ScratchNeeds& needs);

// A profile under one of its plans.
struct PlannedProfile {
  const PreparedProfile* profile = nullptr;
  size_t plan = 0;

  bool operator==(const PlannedProfile&) const = default;
};

// profiles: those of the step's sequences.
[[nodiscard]] ScratchPlan plan_scratch(const Runtime& runtime, const PreparedModel& model,
                                       const std::vector<PlannedProfile>& profiles, const ProductSet& products,
                                       const ScratchNeeds& needs);

// Of one layer under a plan; rows, sequences and tokens are the caller's to fill in.
[[nodiscard]] backend::AttendShape attend_shape(const PreparedModel& model, const PreparedProfile& profile, size_t plan,
                                                size_t layer);

}  // namespace foldkv
