#pragma once

#include "backends/cpu/attend_plan.h"

// The arithmetic of one unit of an attend call.
namespace foldkv::backend::cpu {

struct AttendContext {
  const Engine& engine;
  const AttendRequest& request;
  AttendGeometry geometry;
  RotationTable rotation;
  AttendPlan plan;
};

// Rows [first_row, first_row + rows) of a sequence and KV heads [first_head, first_head + heads).
struct UnitQueries {
  const AttendSequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_head = 0;
  int64_t heads = 0;
  int32_t smallest_position = 0;
  int32_t largest_position = 0;

  [[nodiscard]] int64_t queries_of_head(const AttendGeometry& geometry) const { return rows * geometry.group; }
  [[nodiscard]] int64_t count(const AttendGeometry& geometry) const { return heads * queries_of_head(geometry); }
};

// Copies the unit's queries and their positions into the scratch memory.
UnitQueries gather_queries(const AttendContext& context, UnitScratch& scratch, UnitQueries unit);

// What the queries of a unit found in one part.
struct PartSums {
  float* sums = nullptr;    // weighted values [queries][width], or weighted latents
  float* weights = nullptr; // [queries]
  float* maxima = nullptr;  // [queries]; minus infinity: nothing visible
};
void attend_latent_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t part,
                        const PartSums& result);
void attend_exact_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch, int64_t part,
                       const PartSums& result);

// Running totals of a unit's queries, in the scratch memory.
void clear_totals(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch);
void merge_latent_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                       const PartSums& part);
void merge_exact_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                      const PartSums& part);
// Writes context and log-sum-exp. The unit has one KV head.
void finish_unit(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch);

}  // namespace foldkv::backend::cpu
