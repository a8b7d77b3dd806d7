#include "samples/lab/fed_attention.h"

#include <algorithm>
#include <limits>

#include "samples/lab/dense_product.h"
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab {
namespace {

constexpr int64_t kBlockRows = 64;  // their scores over a thousand tokens stay in the second-level cache

// Some rows of one query head, and where its numbers begin in rows of queries and of keys.
struct HeadBlock {
  HeadBlock(const FedAttention& attention, int64_t head, int64_t first_row)
      : first(first_row),
        count(std::min(kBlockRows, attention.rows - first_row)),
        end(attention.tokens - attention.rows + first + count),
        stride((end + 15) / 16 * 16),
        query_offset(first * attention.shape.query_width() + head * attention.shape.head_size),
        key_offset(head / (attention.shape.query_heads / attention.shape.kv_heads) * attention.shape.head_size) {}

  int64_t first;
  int64_t count;
  int64_t end;     // of the tokens that the last row sees
  int64_t stride;  // of scores: end in whole vectors
  int64_t query_offset;
  int64_t key_offset;
};

int64_t block_count(const FedAttention& attention) { return (attention.rows + kBlockRows - 1) / kBlockRows; }

int64_t score_numbers(const FedAttention& attention) { return kBlockRows * (attention.tokens + 15); }

// scores [count, stride] = a [count, head size] * b [end, head size]^T: rows of queries with rows of keys.
void multiply_heads(const FedAttention& attention, const HeadBlock& block, const float* a, const float* b,
                    float* scores) {
  dense_product({.a = a + block.query_offset,
                 .a_stride = attention.shape.query_width(),
                 .b = b + block.key_offset,
                 .b_stride = attention.shape.kv_width(),
                 .b_transposed = true,
                 .c = scores,
                 .c_stride = block.stride,
                 .rows = block.count,
                 .depth = attention.shape.head_size,
                 .columns = block.end});
}

// output [count, head size] = scores [count, end] * b [end, head size].
void mix_heads(const FedAttention& attention, const HeadBlock& block, const float* scores, const float* b,
               float* output) {
  dense_product({.a = scores,
                 .a_stride = block.stride,
                 .b = b + block.key_offset,
                 .b_stride = attention.shape.kv_width(),
                 .c = output + block.query_offset,
                 .c_stride = attention.shape.query_width(),
                 .rows = block.count,
                 .depth = block.end,
                 .columns = attention.shape.head_size});
}

// output [end, head size] += scores [count, end]^T * b [count, head size].
void spread_heads(const FedAttention& attention, const HeadBlock& block, const float* scores, const float* b,
                  float* output) {
  dense_product({.a = scores,
                 .a_stride = block.stride,
                 .a_transposed = true,
                 .b = b + block.query_offset,
                 .b_stride = attention.shape.query_width(),
                 .c = output,
                 .c_stride = attention.shape.head_size,
                 .rows = block.end,
                 .depth = block.count,
                 .columns = attention.shape.head_size,
                 .accumulate = true});
}

// probabilities [count, stride], zero for tokens that a row does not see.
void find_probabilities(const FedAttention& attention, const HeadBlock& block, float* probabilities) {
  const VectorKernels& kernels = vector_kernels();
  multiply_heads(attention, block, attention.queries, attention.keys, probabilities);
  for (int64_t i = 0; i < block.count; ++i) {
    float* row = probabilities + i * block.stride;
    const int64_t visible = block.end - block.count + i + 1;
    std::fill(row + visible, row + block.stride, -std::numeric_limits<float>::infinity());
    const float sum = kernels.exponentials(row, block.stride, kernels.maximum(row, block.stride));
    kernels.scale(row, block.stride, 1.0f / sum);
  }
}

// Gradients of probabilities become gradients of scores: p * (gradient - the mean of gradients under p). That mean is
// the product of the mixed values with their gradient.
void differentiate_softmax(const FedAttention& attention, const HeadBlock& block, const float* probabilities,
                           const float* mixed, const float* mixed_gradient, float* gradients) {
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t offset = block.query_offset + i * attention.shape.query_width();
    double mean = 0;
    for (int64_t j = 0; j < attention.shape.head_size; ++j) {
      mean += static_cast<double>(mixed[offset + j]) * static_cast<double>(mixed_gradient[offset + j]);
    }
    const float shift = static_cast<float>(mean);
    const float* weights = probabilities + i * block.stride;
    float* row = gradients + i * block.stride;
    for (int64_t j = 0; j < block.end; ++j) row[j] = weights[j] * (row[j] - shift);
  }
}

// All rows of one query head. key_gradient and value_gradient [tokens, head size]: this head's share.
void head_backward(const FedAttention& attention, int64_t head, const float* mixed, const float* mixed_gradient,
                   float* query_gradient, float* key_gradient, float* value_gradient) {
  std::fill_n(key_gradient, attention.tokens * attention.shape.head_size, 0.0f);
  std::fill_n(value_gradient, attention.tokens * attention.shape.head_size, 0.0f);
  FloatBuffer probabilities(score_numbers(attention));
  FloatBuffer gradients(score_numbers(attention));
  for (int64_t first = 0; first < attention.rows; first += kBlockRows) {
    const HeadBlock block(attention, head, first);
    find_probabilities(attention, block, probabilities.data());
    multiply_heads(attention, block, mixed_gradient, attention.values, gradients.data());
    differentiate_softmax(attention, block, probabilities.data(), mixed, mixed_gradient, gradients.data());
    mix_heads(attention, block, gradients.data(), attention.keys, query_gradient);
    spread_heads(attention, block, gradients.data(), attention.queries, key_gradient);
    spread_heads(attention, block, probabilities.data(), mixed_gradient, value_gradient);
  }
}

// sums [tokens, kv width]: the shares [query head, token, head size] of the query heads of each KV head.
void add_shares(const FedAttention& attention, const float* shares, ThreadPool& threads, float* sums) {
  const int64_t head_size = attention.shape.head_size;
  const int64_t group = attention.shape.query_heads / attention.shape.kv_heads;
  threads.parallel_for(attention.shape.kv_heads, [&](int64_t kv_head) {
    for (int64_t token = 0; token < attention.tokens; ++token) {
      float* sum = sums + token * attention.shape.kv_width() + kv_head * head_size;
      std::fill_n(sum, head_size, 0.0f);
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const float* share = shares + (head * attention.tokens + token) * head_size;
        for (int64_t i = 0; i < head_size; ++i) sum[i] += share[i];
      }
    }
  });
}

}  // namespace

void attend(const FedAttention& attention, float* mixed, ThreadPool& threads) {
  const int64_t blocks = block_count(attention);
  threads.parallel_for(attention.shape.query_heads * blocks, [&](int64_t task) {
    const HeadBlock block(attention, task / blocks, task % blocks * kBlockRows);
    FloatBuffer probabilities(score_numbers(attention));
    find_probabilities(attention, block, probabilities.data());
    mix_heads(attention, block, probabilities.data(), attention.values, mixed);
  });
}

FedAttentionGradients attend_backward(const FedAttention& attention, const float* mixed, const float* mixed_gradient,
                                      ThreadPool& threads) {
  const ModelShape& shape = attention.shape;
  const int64_t share = attention.tokens * shape.head_size;
  FloatBuffer key_shares(shape.query_heads * share);
  FloatBuffer value_shares(shape.query_heads * share);
  FedAttentionGradients gradients{FloatBuffer(attention.rows * shape.query_width()),
                                  FloatBuffer(attention.tokens * shape.kv_width()),
                                  FloatBuffer(attention.tokens * shape.kv_width())};
  threads.parallel_for(shape.query_heads, [&](int64_t head) {
    head_backward(attention, head, mixed, mixed_gradient, gradients.queries.data(), key_shares.data() + head * share,
                  value_shares.data() + head * share);
  });
  add_shares(attention, key_shares.data(), threads, gradients.keys.data());
  add_shares(attention, value_shares.data(), threads, gradients.values.data());
  return gradients;
}

}  // namespace foldkv_lab
