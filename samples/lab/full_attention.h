#pragma once

#include <cstdint>
#include <vector>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/attention.h"
#include "samples/lab/full_cache.h"
#include "samples/lab/model.h"
#include "samples/lab/rotation_table.h"
#include "samples/lab/thread_pool.h"
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab {

// Attention over the lab's own full cache: the yardstick that FoldKV is measured against. Query heads that share a KV
// head read its blocks once; softmax is taken on the fly, block by block.
class FullAttention final : public Attention {
 public:
  // model and threads must outlive this object. capacity: the most tokens the cache can hold.
  FullAttention(const Model& model, CacheFormat format, int64_t capacity, ThreadPool& threads);

  [[nodiscard]] absl::Status begin_step(int64_t tokens, bool prompt_continues) override;
  [[nodiscard]] absl::Status attend(int64_t layer, const float* normed, float* output) override;
  [[nodiscard]] absl::Status commit_step() override;
  void roll_back_step() override { step_tokens_ = 0; }
  [[nodiscard]] int64_t token_count() const override { return tokens_; }
  [[nodiscard]] absl::Status clear() override;

  [[nodiscard]] const FullCache& cache() const { return cache_; }

 private:
  // What one task attends: some tokens of the step, in all query heads of one KV head, over a run of key blocks.
  // Its row t * query heads per KV head + h is token t, head h of the group.
  struct Tile {
    int64_t kv_head;
    int64_t first_token;  // of the step
    int64_t token_count;
    int64_t first_block;
    int64_t end_block;
  };

  void plan_tiles();
  void store_step(int64_t layer);
  void attend_tile(int64_t layer, size_t index);
  void merge_tiles();
  void write_context(const Tile& tile, const float* sums, const float* weights);
  [[nodiscard]] float* query_row(int64_t kv_head, int64_t token) const;

  const Model& model_;
  ThreadPool& threads_;
  const VectorKernels& kernels_;
  FullCache cache_;
  RotationTable rotation_;
  int64_t heads_per_group_;
  int64_t tokens_ = 0;
  int64_t step_tokens_ = 0;

  // Of the step. Partial results have tile_rows_ rows for each tile.
  int64_t tile_rows_ = 0;
  std::vector<Tile> tiles_;
  bool split_keys_ = false;      // several tiles share their rows
  FloatBuffer projected_;        // [tokens, query width + 2 * kv width]
  mutable FloatBuffer queries_;  // [kv head, token, head of the group, head size]: rotated and scaled
  FloatBuffer context_;          // [tokens, query width]
  FloatBuffer partial_sums_;     // [tile, row, padded head size]: probability-weighted values
  FloatBuffer partial_weights_;  // [tile, row]: sums of probabilities
  FloatBuffer partial_maxima_;   // [tile, row]: scores that the probabilities are relative to
  FloatBuffer scratch_;          // [tile, row, 64] scores, then one widened block for each tile
};

}  // namespace foldkv_lab
