#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/engine.h"
#include "backends/cpu/latent_tile.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/operations.h"

// How the work of one attend call is cut into units, and the memory that they use. No choice made here changes results:
// units of any size compute the same partial sums over partitions (partitions.h) and merge them in the same order.
//
// A query is a row and a query head. Queries of a unit are ordered [kv head][row][head of the group], so that those of
// one KV head, which share keys and values, are adjacent.
namespace foldkv::backend::cpu {

struct AttendGeometry {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t group = 0;       // query heads that share a KV head
  int64_t head_size = 0;
  int64_t head_width = 0;  // padded
  int64_t key_latents = 0;    // stored width
  int64_t value_latents = 0;  // stored width
  int64_t value_width = 0;    // of the latents of values, padded
  int64_t correction_rank = 0;
  int64_t rotated_pairs = 0;

  [[nodiscard]] static AttendGeometry of(const AttendShape& shape);
  [[nodiscard]] static AttendGeometry of(const AttendRequest& request);
};

// Queries of one unit at most: one KV head of several rows, or all heads of few rows.
[[nodiscard]] int64_t largest_unit(const AttendGeometry& geometry, int64_t rows);

// A sequence of few rows is cut at partitions, whose sums are merged when all are there. One of many rows is cut into
// blocks of rows; a unit goes through all partitions of a block and KV head.
struct SequencePlan {
  bool by_partition = false;
  int64_t latent_parts = 0;
  int64_t exact_parts = 0;
  int64_t block_rows = 0;       // by rows
  int64_t heads_of_unit = 0;    // KV heads
  int64_t first_unit = 0;
  int64_t unit_count = 0;
  int64_t first_merge = 0;      // merge units: KV heads of sequences cut at partitions
  int64_t queries = 0;          // of all rows
  // By partition: sums of the parts, latent parts first.
  float* latent_sums = nullptr;  // [latent parts][queries][value width]
  float* exact_sums = nullptr;   // [exact parts][queries][head width]
  float* maxima = nullptr;       // [parts][queries]
  float* sums = nullptr;         // [parts][queries]

  [[nodiscard]] int64_t parts() const { return latent_parts + exact_parts; }
};

// Memory of one worker.
struct UnitScratch {
  float* queries = nullptr;            // [queries][head size]
  int32_t* query_positions = nullptr;  // [queries]
  float* scores = nullptr;             // [queries][64]
  float* part_sums = nullptr;          // [queries][head width or value width]
  float* exact_total = nullptr;        // [queries][head width]
  float* latent_total = nullptr;       // [queries][value width]
  float* rebuilt = nullptr;            // [queries][head width]
  float* maxima = nullptr;             // [queries] each
  float* sums = nullptr;
  float* factors = nullptr;
  float* total_maxima = nullptr;
  float* total_sums = nullptr;
  float* latent_mass = nullptr;
  float* key_latents = nullptr;        // [key latents][64]
  float* value_latents = nullptr;      // [64][value width]
  float* coefficients = nullptr;       // [rank][64]
  float* correction = nullptr;         // [head size][rank]
  float* mean = nullptr;               // [head size]
  float* keys = nullptr;               // [head size][64]
  float* values = nullptr;             // [64][head width]
  float* cosines = nullptr;            // [pairs][64]
  float* sines = nullptr;
  float* rotation = nullptr;
  LatentScratch latent;

  static UnitScratch take(Workspace& workspace, const AttendGeometry& geometry, int64_t queries);
};

struct AttendPlan {
  std::span<SequencePlan> sequences;
  std::span<UnitScratch> workers;
  int64_t unit_count = 0;
  int64_t merge_count = 0;
};

[[nodiscard]] int64_t attend_plan_bytes(const Engine& engine, const AttendShape& shape);
[[nodiscard]] AttendPlan make_attend_plan(const Engine& engine, const AttendRequest& request);

}  // namespace foldkv::backend::cpu
