#include "backends/reference/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {
namespace {

bool visible(const AttentionRules& rules, int64_t query_position, int64_t key_position) {
  if (key_position > query_position) return false;
  return rules.window == 0 || key_position > query_position - rules.window;
}

// Logits of one head, then their softmax, into weights [count]. Returns the log-sum-exp.
double softmax_weights(const AttentionRules& rules, const VisibleTokens& tokens, const double* query, int64_t position,
                       int64_t kv_head, double* weights) {
  double largest = kInvisible;
  for (int64_t t = 0; t < tokens.count(); ++t) {
    weights[t] = logit_of(rules, tokens, query, position, kv_head, t);
    largest = std::max(largest, weights[t]);
  }
  if (largest == kInvisible) {
    std::fill_n(weights, tokens.count(), 0.0);
    return kInvisible;
  }
  double sum = 0.0;
  for (int64_t t = 0; t < tokens.count(); ++t) {
    weights[t] = std::exp(weights[t] - largest);
    sum += weights[t];
  }
  for (int64_t t = 0; t < tokens.count(); ++t) weights[t] /= sum;
  return largest + std::log(sum);
}

void add_scaled(double factor, const double* numbers, int64_t count, double* sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] += factor * numbers[i];
}

// context [head_size] = sum of weights * values of one KV head. Latents are summed first and go through the basis
// once; their share of the weights carries the mean.
void weighted_values(const AttentionRules& rules, const VisibleTokens& tokens, int64_t kv_head,
                     const AttentionScratch& scratch, double* context) {
  const int64_t width = rules.kv_heads * rules.head_size;
  const int64_t first = kv_head * rules.head_size;
  std::fill_n(context, rules.head_size, 0.0);
  for (int64_t t = 0; t < tokens.exact_count; ++t) {
    const double weight = scratch.weights[tokens.latent_count + t];
    add_scaled(weight, tokens.values + t * width + first, rules.head_size, context);
  }
  if (tokens.latent_count == 0) return;
  double share = 0.0;
  std::fill_n(scratch.latent_sum, tokens.value_latent_width, 0.0);
  for (int64_t t = 0; t < tokens.latent_count; ++t) {
    share += scratch.weights[t];
    add_scaled(scratch.weights[t], tokens.value_latents + t * tokens.value_latent_width, tokens.value_latent_width,
               scratch.latent_sum);
  }
  for (int64_t i = 0; i < rules.head_size; ++i) {
    if (tokens.value_basis == nullptr) {
      context[i] += scratch.latent_sum[tokens.value_coordinate + first + i];
    } else {
      const float* const basis = tokens.value_basis + (first + i) * tokens.value_basis_stride;
      context[i] += dot(basis, scratch.latent_sum, tokens.value_latent_width);
    }
    if (tokens.value_mean != nullptr) context[i] += share * double_from_f16(tokens.value_mean[first + i]);
  }
}

}  // namespace

double logit_of(const AttentionRules& rules, const VisibleTokens& tokens, const double* query, int64_t position,
                int64_t kv_head, int64_t token) {
  if (!visible(rules, position, tokens.positions[token])) return kInvisible;
  const double* const key = tokens.keys + (token * rules.kv_heads + kv_head) * rules.head_size;
  const double scaled = rules.scale * dot(query, key, rules.head_size);
  return rules.soft_cap == 0.0 ? scaled : rules.soft_cap * std::tanh(scaled / rules.soft_cap);
}

void attend_row(const AttentionRules& rules, const VisibleTokens& tokens, const double* query, int32_t position,
                const AttentionScratch& scratch, double* context, double* log_sum_exp) {
  const int64_t group = rules.query_heads / rules.kv_heads;
  for (int64_t head = 0; head < rules.query_heads; ++head) {
    const double* const head_query = query + head * rules.head_size;
    log_sum_exp[head] = softmax_weights(rules, tokens, head_query, position, head / group, scratch.weights);
    weighted_values(rules, tokens, head / group, scratch, context + head * rules.head_size);
  }
}

}  // namespace foldkv::backend::reference
