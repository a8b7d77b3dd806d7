#include "backends/cpu/attend_plan.h"

#include <algorithm>

#include "backends/cpu/partitions.h"

namespace foldkv::backend::cpu {
namespace {

// Blocks of fewer rows would rebuild the same keys too often.
constexpr int64_t kFewestBlockRows = 16;
constexpr int64_t kUnitsOfWorker = 3;
// Beyond this many partitions, only sequences of one row are sure to be cut at partitions.
constexpr int64_t kSharedPartitions = 40;

struct Totals {
  int64_t rows = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
};

// Rows of a sequence that may be cut at partitions.
int64_t few_rows(const AttendGeometry& geometry) { return std::max<int64_t>(1, kUnitQueries / geometry.query_heads); }

// Room for partial sums, counted in queries times partitions: every sequence with one row finds room, and some with
// more. Never falls when a number of the shape rises, since a workspace serves smaller calls too.
int64_t partial_queries(const AttendGeometry& geometry, const Totals& totals) {
  const int64_t parts = most_partitions(totals.tokens, 2 * totals.sequences);
  return parts * geometry.query_heads + std::min(parts, kSharedPartitions) * largest_unit(geometry, totals.rows);
}

class PartialSums {
 public:
  PartialSums(Workspace& workspace, const AttendGeometry& geometry, int64_t queries)
      : geometry_(geometry), queries_left_(queries) {
    sums_ = workspace.take<float>(queries * std::max(geometry.value_width, geometry.head_width));
    maxima_ = workspace.take<float>(queries);
    part_sums_ = workspace.take<float>(queries);
  }

  // False when there is no room left.
  bool give(SequencePlan& plan) {
    const int64_t queries = plan.queries * plan.parts();
    if (queries > queries_left_) return false;
    queries_left_ -= queries;
    plan.latent_sums = sums_;
    plan.exact_sums = plan.latent_sums + plan.latent_parts * plan.queries * geometry_.value_width;
    sums_ = plan.exact_sums + plan.exact_parts * plan.queries * geometry_.head_width;
    plan.maxima = maxima_;
    maxima_ += queries;
    plan.sums = part_sums_;
    part_sums_ += queries;
    return true;
  }

 private:
  const AttendGeometry& geometry_;
  int64_t queries_left_;
  float* sums_;
  float* maxima_;
  float* part_sums_;
};

Totals totals_of(const AttendRequest& request) {
  Totals totals;
  totals.sequences = std::ssize(request.sequences);
  int64_t head_rows = 0;
  for (const AttendSequence& sequence : request.sequences) {
    head_rows += sequence.row_count * sequence.kv_heads(request.rules);
    totals.tokens += sequence.exact.token_count + sequence.latent.token_count;
  }
  // Views of some heads share their rows.
  totals.rows = divide_up(head_rows, request.rules.kv_heads);
  return totals;
}

void plan_by_partition(int64_t workers, SequencePlan& plan) {
  plan.by_partition = true;
  plan.heads_of_unit = plan.parts() >= kUnitsOfWorker * workers ? plan.heads : 1;
  plan.unit_count = plan.parts() * (plan.heads / plan.heads_of_unit);
}

void plan_by_rows(const AttendGeometry& geometry, int64_t workers, int64_t rows, SequencePlan& plan) {
  const int64_t most = std::max<int64_t>(1, kUnitQueries / geometry.group);
  const int64_t for_balance = divide_up(rows * plan.heads, kUnitsOfWorker * workers);
  plan.block_rows = std::min(most, std::max(for_balance, kFewestBlockRows));
  plan.heads_of_unit = 1;
  plan.unit_count = divide_up(rows, plan.block_rows) * plan.heads;
}

}  // namespace

UnitScratch UnitScratch::take(Workspace& workspace, const AttendGeometry& geometry, int64_t queries) {
  UnitScratch scratch;
  scratch.query = QueryScratch::take(workspace, geometry, queries);
  scratch.key = KeyScratch::take(workspace, geometry);
  scratch.part_sums = workspace.take<float>(queries * std::max(geometry.value_width, geometry.head_width));
  scratch.exact_total = workspace.take<float>(queries * geometry.head_width);
  scratch.latent_total = workspace.take<float>(queries * geometry.value_width);
  scratch.rebuilt = workspace.take<float>(queries * geometry.head_width);
  for (float** numbers : {&scratch.maxima, &scratch.sums, &scratch.factors, &scratch.total_maxima,
                          &scratch.total_sums, &scratch.latent_mass}) {
    *numbers = workspace.take<float>(queries);
  }
  scratch.value_latents = workspace.take<float>(kTile * geometry.value_width);
  scratch.mean = workspace.take<float>(geometry.head_size);
  scratch.keys = workspace.take<float>(geometry.head_size * kTile);
  scratch.values = workspace.take<float>(kTile * geometry.head_width);
  return scratch;
}

int64_t attend_plan_bytes(const Engine& engine, const AttendShape& shape) {
  const AttendGeometry geometry = AttendGeometry::of(shape);
  Workspace workspace(nullptr);
  workspace.take<SequencePlan>(shape.sequences);
  workspace.take<UnitScratch>(engine.workers());
  for (int64_t worker = 0; worker < engine.workers(); ++worker) {
    UnitScratch::take(workspace, geometry, largest_unit(geometry, shape.rows));
  }
  PartialSums(workspace, geometry, partial_queries(geometry, {shape.rows, shape.sequences, shape.total_tokens}));
  return workspace.bytes();
}

AttendPlan make_attend_plan(const Engine& engine, const AttendRequest& request) {
  const AttendGeometry geometry = AttendGeometry::of(request.rules, request.latent);
  const Totals totals = totals_of(request);
  Workspace workspace(request.workspace);
  AttendPlan plan;
  plan.sequences = {workspace.take<SequencePlan>(totals.sequences), static_cast<size_t>(totals.sequences)};
  plan.workers = {workspace.take<UnitScratch>(engine.workers()), static_cast<size_t>(engine.workers())};
  for (UnitScratch& worker : plan.workers) {
    worker = UnitScratch::take(workspace, geometry, largest_unit(geometry, totals.rows));
  }
  PartialSums partial_sums(workspace, geometry, partial_queries(geometry, totals));

  // Sequences of one row first: they gain most.
  for (const bool single : {true, false}) {
    for (size_t index = 0; index < plan.sequences.size(); ++index) {
      const AttendSequence& sequence = request.sequences[index];
      if ((sequence.row_count <= 1) != single) continue;
      SequencePlan& sequence_plan = plan.sequences[index];
      sequence_plan = {.first_head = sequence.first_head, .heads = sequence.kv_heads(request.rules)};
      sequence_plan.latent_parts = partition_count(sequence.latent.token_count);
      sequence_plan.exact_parts = partition_count(sequence.exact.token_count);
      sequence_plan.queries = sequence.row_count * sequence_plan.heads * geometry.group;
      if (sequence.row_count == 0) continue;
      if (sequence.row_count <= few_rows(geometry) && partial_sums.give(sequence_plan)) {
        plan_by_partition(engine.workers(), sequence_plan);
      } else {
        plan_by_rows(geometry, engine.workers(), sequence.row_count, sequence_plan);
      }
    }
  }
  for (SequencePlan& sequence : plan.sequences) {
    sequence.first_unit = plan.unit_count;
    plan.unit_count += sequence.unit_count;
    sequence.first_merge = plan.merge_count;
    if (sequence.by_partition) plan.merge_count += sequence.heads;
  }
  return plan;
}

}  // namespace foldkv::backend::cpu
