#pragma once

#include <cstdint>
#include <limits>

#include "backends/interface/operations.h"

// Attention of one query row in double precision, as its definition reads.
namespace foldkv::backend::reference {

// Tokens of one layer that queries look at: first those of the latent region, then those of the exact region.
// Width: kv heads * head size.
struct VisibleTokens {
  int64_t latent_count = 0;
  int64_t exact_count = 0;
  const double* keys = nullptr;           // [count()][width], rotated
  const int32_t* positions = nullptr;     // [count()]
  const double* value_latents = nullptr;  // [latent_count][value_latent_width]
  const double* values = nullptr;         // [exact_count][width]
  int64_t value_latent_width = 0;
  const float* value_basis = nullptr;    // [width][value_basis_stride], of which value_latent_width columns are used
  int64_t value_basis_stride = 0;
  const uint16_t* value_mean = nullptr;  // f16 [width]; null: zero
  int64_t value_coordinate = 0;          // without a basis: of the latents, where the layer's first number is

  [[nodiscard]] int64_t count() const { return latent_count + exact_count; }
};

inline constexpr double kInvisible = -std::numeric_limits<double>::infinity();
// Of one token for a query [head_size] that looks at keys of `kv_head`; kInvisible when it does not see the token.
[[nodiscard]] double logit_of(const AttentionRules& rules, const VisibleTokens& tokens, const double* query,
                              int64_t position, int64_t kv_head, int64_t token);

struct AttentionScratch {
  double* weights = nullptr;     // [tokens]
  double* latent_sum = nullptr;  // [value_latent_width]
};

// query [query_heads][head_size], rotated. context likewise; log_sum_exp [query_heads], natural logarithm.
void attend_row(const AttentionRules& rules, const VisibleTokens& tokens, const double* query, int32_t position,
                const AttentionScratch& scratch, double* context, double* log_sum_exp);

}  // namespace foldkv::backend::reference
