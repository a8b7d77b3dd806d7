#pragma once

#include "backends/cpu/attend_plan.h"

// The arithmetic of one unit of an attend call.
namespace foldkv::backend::cpu {

struct AttendContext : AttendInputs {
  const AttendRequest& request;
  AttendPlan plan;
};

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
