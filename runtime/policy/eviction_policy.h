#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/policy/head_reduction.h"
#include "runtime/policy/pooling.h"
#include "runtime/policy/ripple_allocation.h"
#include "runtime/policy/row_reduction.h"
#include "runtime/policy/token_count.h"

namespace foldkv {

// What gives a token its score (methods.md sections 0 and 3).
enum class Scorer : int32_t {
  kNone = 1,               // nothing is evicted
  kPosition = 2,           // sinks, and for the rest of the budget the most recent tokens
  kWindow = 3,             // attention of the prompt's last rows
  kAccumulated = 4,        // attention of all rows so far: added up, or counted (RowReduction::kNegatedBelow)
  kLastRow = 5,            // attention of the newest row
  kExpectedAttention = 6,  // attention of queries to come
};

enum class ValueWeighting : int32_t {
  kNone = 1,
  kValueNormL1 = 2,
  kValueNormL2 = 3,
  kHeadValueMaximum = 4,  // largest L1 norm of the head's values
  kOutputNormL1 = 5,      // L1 norm of the values through the output projection
};

// Who keeps the same tokens.
enum class SelectionScope : int32_t { kHead = 1, kLayer = 2, kGroup = 3 };

enum class LayerAllocator : int32_t {
  kUniform = 1,
  kPyramid = 2,
  kRipple = 3,
  kCake = 4,
  kLava = 5,
  kDynamic = 6,
  kImportance = 7,  // CompressKV
  kCustom = 8,      // weights of the caller
  kEpisode = 9,     // EpiCache
  kCosine = 10,     // PyramidInfer
};

enum class HeadAllocator : int32_t { kUniform = 1, kAda = 2, kLava = 3 };

struct ScoringRules {
  Scorer scorer = Scorer::kNone;
  RowReduction rows = RowReduction::kMean;
  double gamma = 0.0;              // of RowReduction::kMeanPlusVariance
  double newest_row_weight = 1.0;  // row weights rise evenly from 1 in the oldest to this in the newest row
  int64_t voting_heads = 0;     // only the best of the profile's ranking vote. 0: all
  int64_t future_tokens = 512;  // kExpectedAttention: positions to come
  bool covariance = true;       // likewise
};

struct ReductionRules {
  Pooling pooling = Pooling::kNone;
  int64_t pool_width = 1;
  bool pool_before_heads = true;     // pooled before heads (and layers) are reduced, else after
  bool pool_over_protected = false;  // tokens kept always lend to their neighbours too, else those that compete only
  HeadReduction heads = HeadReduction::kMean;
  bool raise_to_mean = false;  // scores below their head's mean are raised to it (DefensiveKV)
  ValueWeighting weighting = ValueWeighting::kNone;
  double epsilon = 0.0;  // added to scores before they are weighted
};

struct SelectionRules {
  SelectionScope scope = SelectionScope::kHead;
  // First stage by the score before weighting: this share of the budget that competes, or the tokens below this mass.
  double first_stage_share = 0.0;    // 0: no first stage
  double first_stage_mass = 0.0;     // likewise
  bool first_stage_by_mean = false;  // by the mean over rows and heads, neither pooled nor raised (DefensiveKV)
  int64_t window_tokens = 0;         // observed, and kept always
  Ratio window_share;                // of the prompt, instead
  int64_t sink_tokens = 0;           // kept always
  int64_t recent_tokens = 0;         // likewise; a window and recent tokens overlap
  Ratio recent_share;                // of the prompt, instead
  bool reindexed = false;            // kept keys are read at positions 0, 1, 2, ... instead of their own
  int64_t interval = 0;              // generated tokens between evictions beyond the budget. 0: only after the prompt
};

// Budgets of a KV head and layer on average, tokens kept always included.
struct BudgetRules {
  int64_t tokens = 0;                 // 0: by ratio
  Ratio keep_ratio;                   // of the prompt. 0: by tokens
  bool ratio_of_unprotected = false;  // of the tokens that compete, those kept always come on top
  LayerAllocator layers = LayerAllocator::kUniform;
  std::vector<double> layer_numbers;  // sensitivities, importances, similarities or weights. Empty: the profile's
  int64_t beta = 20;                  // kPyramid
  double ripple_ratio = 1.5;          // kRipple
  double ripple_gamma = 2.0;
  RippleOrder ripple_order = RippleOrder::kClipFirst;
  double entropy_temperature = 1.0;  // kCake
  double variance_temperature = 1.0;
  double most_ratio = 10.0;         // kDynamic, kImportance: cap over average
  int64_t floor_tokens = 32;        // kImportance
  double layer_floor_share = 0.25;  // kEpisode: of the average
  double sharpness = 1.1;           // likewise
  double decay = 0.9;               // kCosine
  HeadAllocator heads = HeadAllocator::kUniform;
  double head_floor_share = 0.2;  // kAda, kLava: of the average
  bool author_rounding = false;   // as the authors round, where their sum is not the budget; for comparisons only
};

// One way to evict: scorer, reducer, selection and allocators. Codec and reader are chosen apart.
struct EvictionPolicy {
  std::string name;
  ScoringRules scoring;
  ReductionRules reduction;
  SelectionRules selection;
  BudgetRules budget;
};

// Refuses values out of range and combinations that make no sense; argument errors name the field
// ("reduction.pool_width"). layers: of the model, for layer_numbers; 0: any number.
[[nodiscard]] Status check_policy(const EvictionPolicy& policy, int64_t layers = 0);

}  // namespace foldkv
