#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attend_unit.h"

namespace foldkv::backend::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct MergeFactors {
  float total;
  float part;
};

// Brings the running total of a query and a part to their common maximum.
MergeFactors merge_weights(const Kernels& kernels, UnitScratch& scratch, const PartSums& part, int64_t query) {
  const float maximum = std::max(scratch.total_maxima[query], part.maxima[query]);
  const float distances[2] = {scratch.total_maxima[query] - maximum, part.maxima[query] - maximum};
  float factors[2];
  kernels.exponential(distances, 2, factors);
  scratch.total_maxima[query] = maximum;
  scratch.total_sums[query] = scratch.total_sums[query] * factors[0] + part.weights[query] * factors[1];
  return {factors[0], factors[1]};
}

// The output of one query from its totals.
void finish_query(const AttendContext& context, const UnitScratch& scratch, int64_t query, bool has_latents,
                  bool has_mean, float* output) {
  const AttendGeometry& geometry = context.geometry;
  context.engine.kernels.finish_row({.width = geometry.head_size,
                                     .exact = scratch.exact_total + query * geometry.head_width,
                                     .rebuilt = has_latents ? scratch.rebuilt + query * geometry.head_width : nullptr,
                                     .mean = has_mean ? scratch.mean : nullptr,
                                     .latent_mass = scratch.latent_mass[query],
                                     .sum = scratch.total_sums[query],
                                     .output = output});
}

// Sums of latents to sums of values: scratch.latent_total times the head's rows of the value basis.
void rebuild_values(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch) {
  const AttendGeometry& geometry = context.geometry;
  const LatentLayer& layer = context.latent;
  const int64_t stride = layer.layout->values.width;
  if (layer.value_basis == nullptr) {
    const int64_t first =
        layer.layout->values.coordinate_of(layer.first_row + unit.first_head * geometry.head_size);
    for (int64_t query = 0; query < unit.count(geometry); ++query) {
      std::copy_n(scratch.latent_total + query * geometry.value_width + first, geometry.head_size,
                  scratch.rebuilt + query * geometry.head_width);
    }
    return;
  }
  const float* basis = layer.value_basis + unit.first_head * geometry.head_size * stride;
  context.engine.kernels.row_product({.rows = unit.count(geometry),
                                      .columns = geometry.head_size,
                                      .depth = geometry.value_latents,
                                      .x = scratch.latent_total,
                                      .x_stride = geometry.value_width,
                                      .weight = reinterpret_cast<const std::byte*>(basis),
                                      .weight_format = NumberFormat::kF32,
                                      .weight_stride = stride,
                                      .y = scratch.rebuilt,
                                      .y_stride = geometry.head_width});
}

}  // namespace

void clear_totals(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch) {
  const int64_t queries = unit.count(context.geometry);
  std::fill_n(scratch.total_maxima, queries, kMinusInfinity);
  std::fill_n(scratch.total_sums, queries, 0.0f);
  std::fill_n(scratch.latent_mass, queries, 0.0f);
  std::fill_n(scratch.exact_total, queries * context.geometry.head_width, 0.0f);
  std::fill_n(scratch.latent_total, queries * context.geometry.value_width, 0.0f);
}

void merge_latent_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                       const PartSums& part) {
  const Kernels& kernels = context.engine.kernels;
  const AttendGeometry& geometry = context.geometry;
  for (int64_t query = 0; query < unit.count(geometry); ++query) {
    if (part.maxima[query] == kMinusInfinity) continue;
    const MergeFactors factors = merge_weights(kernels, scratch, part, query);
    scratch.latent_mass[query] = scratch.latent_mass[query] * factors.total + part.weights[query] * factors.part;
    kernels.merge_row({.width = geometry.value_width,
                       .total = scratch.latent_total + query * geometry.value_width,
                       .part = part.sums + query * geometry.value_width,
                       .total_factor = factors.total,
                       .part_factor = factors.part});
    // No exact part has been merged yet: they come last.
  }
}

void merge_exact_part(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch,
                      const PartSums& part) {
  const Kernels& kernels = context.engine.kernels;
  const AttendGeometry& geometry = context.geometry;
  for (int64_t query = 0; query < unit.count(geometry); ++query) {
    if (part.maxima[query] == kMinusInfinity) continue;
    const MergeFactors factors = merge_weights(kernels, scratch, part, query);
    scratch.latent_mass[query] *= factors.total;
    float* latents = scratch.latent_total + query * geometry.value_width;
    if (factors.total != 1.0f) {
      std::for_each(latents, latents + geometry.value_width, [&](float& number) { number *= factors.total; });
    }
    kernels.merge_row({.width = geometry.head_width,
                       .total = scratch.exact_total + query * geometry.head_width,
                       .part = part.sums + query * geometry.head_width,
                       .total_factor = factors.total,
                       .part_factor = factors.part});
  }
}

void finish_unit(const AttendContext& context, const UnitQueries& unit, UnitScratch& scratch) {
  const AttendGeometry& geometry = context.geometry;
  const LatentRegion& region = unit.sequence->latent;
  const bool has_latents = region.token_count > 0;
  const bool has_mean = has_latents && region.value_mean != nullptr;
  if (has_latents) rebuild_values(context, unit, scratch);
  if (has_mean) {
    const int64_t first = context.latent.first_row + unit.first_head * geometry.head_size;
    context.engine.kernels.to_f32(NumberFormat::kF16, region.value_mean + first, geometry.head_size, scratch.mean);
  }
  int64_t query = 0;
  for (int64_t row = 0; row < unit.rows; ++row) {
    for (int64_t head = 0; head < geometry.group; ++head, ++query) {
      const int64_t row_of_request = unit.sequence->first_row + unit.first_row + row;
      const int64_t place = row_of_request * geometry.query_heads + unit.first_head * geometry.group + head;
      float* output = context.request.context + place * geometry.head_size;
      const bool any = scratch.total_maxima[query] != kMinusInfinity;
      if (any) {
        finish_query(context, scratch, query, has_latents, has_mean, output);
      } else {
        std::fill_n(output, geometry.head_size, 0.0f);
      }
      if (context.request.log_sum_exp == nullptr) continue;
      const double sum = any ? std::log(static_cast<double>(scratch.total_sums[query])) : 0.0;
      context.request.log_sum_exp[place] =
          static_cast<float>(static_cast<double>(scratch.total_maxima[query]) + sum);
    }
  }
}

}  // namespace foldkv::backend::cpu
