#include "backends/cpu/attend.h"

#include <algorithm>

#include "backends/cpu/attend_unit.h"

namespace foldkv::backend::cpu {
namespace {

// The sums of a part of a sequence cut at partitions, for the queries of some KV heads.
PartSums part_of_plan(const AttendGeometry& geometry, const SequencePlan& plan, int64_t part, int64_t first_query) {
  PartSums sums;
  sums.maxima = plan.maxima + part * plan.queries + first_query;
  sums.weights = plan.sums + part * plan.queries + first_query;
  if (part < plan.latent_parts) {
    sums.sums = plan.latent_sums + (part * plan.queries + first_query) * geometry.value_width;
  } else {
    sums.sums = plan.exact_sums + ((part - plan.latent_parts) * plan.queries + first_query) * geometry.head_width;
  }
  return sums;
}

void attend_partition(const AttendContext& context, const SequencePlan& plan, const AttendSequence& sequence,
                      int64_t unit_index, UnitScratch& scratch) {
  const int64_t head_units = plan.heads / plan.heads_of_unit;
  const int64_t part = unit_index / head_units;
  const UnitQueries unit = gather_queries(context, scratch.query,
                                          {.sequence = &sequence,
                                           .rows = sequence.row_count,
                                           .first_head = plan.first_head + unit_index % head_units * plan.heads_of_unit,
                                           .heads = plan.heads_of_unit});
  const int64_t first_query = (unit.first_head - plan.first_head) * unit.queries_of_head(context.geometry);
  const PartSums sums = part_of_plan(context.geometry, plan, part, first_query);
  if (part < plan.latent_parts) {
    attend_latent_part(context, unit, scratch, part, sums);
  } else {
    attend_exact_part(context, unit, scratch, part - plan.latent_parts, sums);
  }
}

void attend_rows(const AttendContext& context, const SequencePlan& plan, const AttendSequence& sequence,
                 int64_t unit_index, UnitScratch& scratch) {
  const int64_t first_row = unit_index / plan.heads * plan.block_rows;
  const UnitQueries unit = gather_queries(context, scratch.query,
                                          {.sequence = &sequence,
                                           .first_row = first_row,
                                           .rows = std::min(plan.block_rows, sequence.row_count - first_row),
                                           .first_head = plan.first_head + unit_index % plan.heads,
                                           .heads = 1});
  const PartSums part = {.sums = scratch.part_sums, .weights = scratch.sums, .maxima = scratch.maxima};
  clear_totals(context, unit, scratch);
  for (int64_t index = 0; index < plan.latent_parts; ++index) {
    attend_latent_part(context, unit, scratch, index, part);
    merge_latent_part(context, unit, scratch, part);
  }
  for (int64_t index = 0; index < plan.exact_parts; ++index) {
    attend_exact_part(context, unit, scratch, index, part);
    merge_exact_part(context, unit, scratch, part);
  }
  finish_unit(context, unit, scratch);
}

void merge_partitions(const AttendContext& context, const SequencePlan& plan, const AttendSequence& sequence,
                      int64_t head, UnitScratch& scratch) {
  const UnitQueries unit = {
      .sequence = &sequence, .rows = sequence.row_count, .first_head = plan.first_head + head, .heads = 1};
  const int64_t first_query = head * unit.queries_of_head(context.geometry);
  clear_totals(context, unit, scratch);
  for (int64_t part = 0; part < plan.parts(); ++part) {
    const PartSums sums = part_of_plan(context.geometry, plan, part, first_query);
    if (part < plan.latent_parts) {
      merge_latent_part(context, unit, scratch, sums);
    } else {
      merge_exact_part(context, unit, scratch, sums);
    }
  }
  finish_unit(context, unit, scratch);
}

// The last sequence whose first unit is not beyond `index`.
template <int64_t SequencePlan::*kFirst>
size_t sequence_of(const AttendPlan& plan, int64_t index) {
  const auto after = std::partition_point(plan.sequences.begin(), plan.sequences.end(),
                                          [index](const SequencePlan& sequence) { return sequence.*kFirst <= index; });
  return static_cast<size_t>(after - plan.sequences.begin()) - 1;
}

}  // namespace

int64_t attend_workspace(const Engine& engine, const AttendShape& shape) { return attend_plan_bytes(engine, shape); }

void attend(const Engine& engine, const AttendRequest& request) {
  const AttendContext context = {AttendInputs::of(engine, request), request, make_attend_plan(engine, request)};
  const AttendPlan& plan = context.plan;
  // Later rows see more keys: beginning with them leaves short units for the end.
  engine.threads.run(plan.unit_count, [&](int64_t unit, int worker) {
    const int64_t index = plan.unit_count - 1 - unit;
    const size_t sequence = sequence_of<&SequencePlan::first_unit>(plan, index);
    const SequencePlan& sequence_plan = plan.sequences[sequence];
    const int64_t unit_of_sequence = index - sequence_plan.first_unit;
    UnitScratch& scratch = plan.workers[static_cast<size_t>(worker)];
    if (sequence_plan.by_partition) {
      attend_partition(context, sequence_plan, request.sequences[sequence], unit_of_sequence, scratch);
    } else {
      attend_rows(context, sequence_plan, request.sequences[sequence], unit_of_sequence, scratch);
    }
  });
  engine.threads.run(plan.merge_count, [&](int64_t unit, int worker) {
    const size_t sequence = sequence_of<&SequencePlan::first_merge>(plan, unit);
    const SequencePlan& sequence_plan = plan.sequences[sequence];
    merge_partitions(context, sequence_plan, request.sequences[sequence], unit - sequence_plan.first_merge,
                     plan.workers[static_cast<size_t>(worker)]);
  });
}

}  // namespace foldkv::backend::cpu
