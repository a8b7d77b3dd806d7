#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/key_tile.h"
#include "backends/cpu/query_unit.h"

// How the work of one attend call is cut into units, and the memory that they use. No choice made here changes results:
// units of any size compute the same partial sums over partitions (partitions.h) and merge them in the same order.
namespace foldkv::backend::cpu {

// A sequence of few rows is cut at partitions, whose sums are merged when all are there. One of many rows is cut into
// blocks of rows; a unit goes through all partitions of a block and KV head.
struct SequencePlan {
  bool by_partition = false;
  int64_t first_head = 0;       // KV heads of the view
  int64_t heads = 0;
  int64_t latent_parts = 0;
  int64_t exact_parts = 0;
  int64_t block_rows = 0;       // by rows
  int64_t heads_of_unit = 0;    // KV heads
  int64_t first_unit = 0;
  int64_t unit_count = 0;
  int64_t first_merge = 0;      // merge units: KV heads of views cut at partitions
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
  QueryScratch query;
  KeyScratch key;
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
  float* value_latents = nullptr;      // [64][value width]
  float* mean = nullptr;               // [head size]
  float* keys = nullptr;               // [head size][64]
  float* values = nullptr;             // [64][head width]

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
