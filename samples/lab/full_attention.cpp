#include "samples/lab/full_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "samples/lab/linear.h"

namespace foldkv_lab {
namespace {

constexpr int64_t kBlock = FullCache::kBlockTokens;
constexpr int64_t kTileTokens = 32;   // scores and sums of a tile stay in the second-level cache
constexpr int64_t kKeyRunBlocks = 8;  // keys of a decode step are shared out to threads in runs of this many blocks
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void grow(FloatBuffer* buffer, int64_t size) {
  if (buffer->size() < size) *buffer = FloatBuffer(size);
}

}  // namespace

FullAttention::FullAttention(const Model& model, CacheFormat format, int64_t capacity, ThreadPool& threads)
    : model_(model),
      threads_(threads),
      kernels_(vector_kernels()),
      cache_(model.shape, format, capacity),
      rotation_(model.shape),
      heads_per_group_(model.shape.query_heads / model.shape.kv_heads) {}

absl::Status FullAttention::begin_step(int64_t tokens, bool /*prompt_continues*/) {
  if (tokens < 1 || tokens > cache_.capacity() - tokens_) {
    return absl::ResourceExhaustedError(absl::StrCat("a step of ", tokens, " tokens after ", tokens_,
                                                     " does not fit a full cache of ", cache_.capacity()));
  }
  const ModelShape& shape = model_.shape;
  step_tokens_ = tokens;
  rotation_.extend(tokens_ + tokens);
  plan_tiles();
  const int64_t tiles = static_cast<int64_t>(tiles_.size());
  grow(&projected_, tokens * (shape.query_width() + 2 * shape.kv_width()));
  grow(&queries_, tokens * shape.query_width());
  grow(&context_, tokens * shape.query_width());
  grow(&partial_sums_, tiles * tile_rows_ * cache_.padded_head_size());
  grow(&partial_weights_, tiles * tile_rows_);
  grow(&partial_maxima_, tiles * tile_rows_);
  grow(&scratch_, tiles * (tile_rows_ * kBlock + cache_.block_numbers()));
  return absl::OkStatus();
}

// The plan depends on the numbers of tokens alone, so that results do not depend on the number of threads.
void FullAttention::plan_tiles() {
  const int64_t tile_tokens = std::min(step_tokens_, kTileTokens);
  tile_rows_ = tile_tokens * heads_per_group_;
  split_keys_ = step_tokens_ <= kTileTokens;
  tiles_.clear();
  for (int64_t kv_head = 0; kv_head < model_.shape.kv_heads; ++kv_head) {
    for (int64_t first = 0; first < step_tokens_; first += tile_tokens) {
      const int64_t count = std::min(tile_tokens, step_tokens_ - first);
      const int64_t blocks = (tokens_ + first + count + kBlock - 1) / kBlock;
      const int64_t run = split_keys_ ? kKeyRunBlocks : blocks;
      for (int64_t block = 0; block < blocks; block += run) {
        tiles_.push_back({kv_head, first, count, block, std::min(block + run, blocks)});
      }
    }
  }
}

absl::Status FullAttention::attend(int64_t layer, const float* normed, float* output) {
  const ModelLayer& weights = model_.layers[static_cast<size_t>(layer)];
  const float* bias = weights.query_key_value_bias.empty() ? nullptr : weights.query_key_value_bias.data();
  linear(weights.query_key_value, bias, normed, step_tokens_, projected_.data(), threads_);
  store_step(layer);
  const int64_t work = step_tokens_ * (tokens_ + step_tokens_) * model_.shape.query_width() * 2;
  threads_.parallel_for(static_cast<int64_t>(tiles_.size()), work,
                        [&](int64_t tile) { attend_tile(layer, static_cast<size_t>(tile)); });
  if (split_keys_) merge_tiles();
  linear(weights.attention_output, nullptr, context_.data(), step_tokens_, output, threads_);
  return absl::OkStatus();
}

absl::Status FullAttention::commit_step() {
  tokens_ += step_tokens_;
  step_tokens_ = 0;
  return absl::OkStatus();
}

absl::Status FullAttention::clear() {
  tokens_ = 0;
  step_tokens_ = 0;
  return absl::OkStatus();
}

float* FullAttention::query_row(int64_t kv_head, int64_t token) const {
  return queries_.data() + (kv_head * step_tokens_ + token) * heads_per_group_ * model_.shape.head_size;
}

// Rotated, scaled queries in the order of the tiles; rotated keys and values into the cache.
void FullAttention::store_step(int64_t layer) {
  const ModelShape& shape = model_.shape;
  const int64_t head_size = shape.head_size;
  const int64_t row_width = shape.query_width() + 2 * shape.kv_width();
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
  threads_.parallel_for(shape.kv_heads, step_tokens_ * row_width * 4, [&](int64_t kv_head) {
    std::vector<float> rotated(static_cast<size_t>(head_size));
    for (int64_t token = 0; token < step_tokens_; ++token) {
      const float* row = projected_.data() + token * row_width;
      const int64_t position = tokens_ + token;
      float* queries = query_row(kv_head, token);
      for (int64_t head = 0; head < heads_per_group_; ++head) {
        rotation_.rotate(row + (kv_head * heads_per_group_ + head) * head_size, position, queries + head * head_size);
      }
      for (int64_t i = 0; i < heads_per_group_ * head_size; ++i) queries[i] *= scale;
      const float* key = row + shape.query_width() + kv_head * head_size;
      rotation_.rotate(key, position, rotated.data());
      cache_.put(layer, kv_head, position, rotated.data(), key + shape.kv_width());
    }
  });
}

void FullAttention::attend_tile(int64_t layer, size_t index) {
  const Tile& tile = tiles_[index];
  const int64_t rows = tile.token_count * heads_per_group_;
  const int64_t head_size = model_.shape.head_size;
  const int64_t padded = cache_.padded_head_size();
  const int64_t slot = static_cast<int64_t>(index);
  float* sums = partial_sums_.data() + slot * tile_rows_ * padded;
  float* weights = partial_weights_.data() + slot * tile_rows_;
  float* maxima = partial_maxima_.data() + slot * tile_rows_;
  float* scores = scratch_.data() + slot * (tile_rows_ * kBlock + cache_.block_numbers());
  float* widened = scores + tile_rows_ * kBlock;
  std::fill_n(sums, rows * padded, 0.0f);
  std::fill_n(weights, rows, 0.0f);
  std::fill_n(maxima, rows, kMinusInfinity);
  for (int64_t block = tile.first_block; block < tile.end_block; ++block) {
    const float* keys = cache_.key_block(layer, tile.kv_head, block, widened);
    kernels_.multiply({query_row(tile.kv_head, tile.first_token), head_size, keys, kBlock, scores, kBlock, rows,
                       head_size, kBlock, false});
    for (int64_t row = 0; row < rows; ++row) {
      float* row_scores = scores + row * kBlock;
      // A token sees the keys up to its own.
      const int64_t end = tokens_ + tile.first_token + row / heads_per_group_ + 1;
      const int64_t visible = std::clamp<int64_t>(end - block * kBlock, 0, kBlock);
      std::fill(row_scores + visible, row_scores + kBlock, kMinusInfinity);
      const float largest = std::max(maxima[row], kernels_.maximum(row_scores, kBlock));
      if (largest == kMinusInfinity) {  // nothing visible so far: probabilities are zero
        std::fill_n(row_scores, kBlock, 0.0f);
        continue;
      }
      if (largest > maxima[row]) {
        const float shrink = std::exp(maxima[row] - largest);
        weights[row] *= shrink;
        kernels_.scale(sums + row * padded, padded, shrink);
        maxima[row] = largest;
      }
      weights[row] += kernels_.exponentials(row_scores, kBlock, largest);
    }
    const float* values = cache_.value_block(layer, tile.kv_head, block, widened);
    kernels_.multiply({scores, kBlock, values, padded, sums, padded, rows, kBlock, padded, true});
  }
  if (!split_keys_) write_context(tile, sums, weights);
}

// One after the other into the first tile of each KV head: the tiles of a KV head stand together and in order.
void FullAttention::merge_tiles() {
  const int64_t padded = cache_.padded_head_size();
  for (size_t first = 0; first < tiles_.size();) {
    size_t end = first + 1;
    while (end < tiles_.size() && tiles_[end].kv_head == tiles_[first].kv_head) ++end;
    const int64_t rows = tiles_[first].token_count * heads_per_group_;
    float* sums = partial_sums_.data() + static_cast<int64_t>(first) * tile_rows_ * padded;
    float* weights = partial_weights_.data() + static_cast<int64_t>(first) * tile_rows_;
    const float* maxima = partial_maxima_.data() + static_cast<int64_t>(first) * tile_rows_;
    for (int64_t row = 0; row < rows; ++row) {
      float largest = maxima[row];
      const auto count = static_cast<int64_t>(end - first);
      for (int64_t i = 1; i < count; ++i) largest = std::max(largest, maxima[i * tile_rows_ + row]);
      float total = 0;
      for (int64_t i = 0; i < count; ++i) {
        const float share = std::exp(maxima[i * tile_rows_ + row] - largest);
        total += weights[i * tile_rows_ + row] * share;
        const float* part = sums + (i * tile_rows_ + row) * padded;
        for (int64_t j = 0; j < padded; ++j) {
          sums[row * padded + j] = i == 0 ? part[j] * share : sums[row * padded + j] + part[j] * share;
        }
      }
      weights[row] = total;
    }
    write_context(tiles_[first], sums, weights);
    first = end;
  }
}

void FullAttention::write_context(const Tile& tile, const float* sums, const float* weights) {
  const int64_t head_size = model_.shape.head_size;
  for (int64_t row = 0; row < tile.token_count * heads_per_group_; ++row) {
    const int64_t token = tile.first_token + row / heads_per_group_;
    const int64_t head = tile.kv_head * heads_per_group_ + row % heads_per_group_;
    float* context = context_.data() + token * model_.shape.query_width() + head * head_size;
    const float* row_sums = sums + row * cache_.padded_head_size();
    for (int64_t i = 0; i < head_size; ++i) context[i] = row_sums[i] / weights[row];
  }
}

}  // namespace foldkv_lab
