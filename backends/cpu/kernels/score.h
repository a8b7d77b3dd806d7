#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/logits.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/vector.h"

// What keys got from queries, summed over rows. The numbers of a key are a chain over rows in rising order, the same
// wherever rows and tiles are cut: hence products that end in sums are written as multiply_add.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

// Queries of one list in a row: those in [first_in_group, end_in_group) of each of some KV heads.
struct ListQueries {
  int64_t first_head;
  int64_t end_head;
  int64_t first_in_group;
  int64_t end_in_group;
};

FOLDKV_INLINE ListQueries queries_of_list(const ScoreTile& tile, int64_t list) {
  switch (tile.lists) {
    case ScoreTile::Lists::kEach: {
      const int64_t head = list / tile.group;
      return {head, head + 1, list % tile.group, list % tile.group + 1};
    }
    case ScoreTile::Lists::kMean:
    case ScoreTile::Lists::kMaximum: return {list, list + 1, 0, tile.group};
    case ScoreTile::Lists::kSum: break;
  }
  return {0, tile.heads, 0, tile.group};
}

// Logits less the log-sum-exp; minus infinity where a key is not visible.
template <bool kMasked>
FOLDKV_INLINE Float distance_of(const ScoreTile& tile, int64_t query, int token) {
  const LogitTile& logits = tile.logits;
  const Float score = load(tile.scores + query * kTile + token);
  const Float log_sum_exp = broadcast(-tile.log_sum_exp[query]);
  Float distance;
  if (logits.soft_cap > 0.0f) {
    const Float capped = hyperbolic_tangent(score * broadcast(logits.scale) / broadcast(logits.soft_cap));
    distance = multiply_add(capped, broadcast(logits.soft_cap), log_sum_exp);
  } else {
    distance = multiply_add(score, broadcast(logits.scale), log_sum_exp);
  }
  return kMasked ? mask_score(logits, distance, token, tile.query_positions[query]) : distance;
}

struct ListWeight {
  Float weight;
  Float largest;  // distance: minus infinity where no query sees the key
};

template <bool kMasked>
FOLDKV_INLINE ListWeight weigh_list(const ScoreTile& tile, const ListQueries& list, int64_t row, int token) {
  ListWeight result = {Float{}, broadcast(-__builtin_inff())};
  for (int64_t head = list.first_head; head < list.end_head; ++head) {
    const int64_t first = (head * tile.rows + row) * tile.group;
    for (int64_t query = first + list.first_in_group; query < first + list.end_in_group; ++query) {
      if (tile.log_sum_exp[query] == -__builtin_inff()) continue;
      const Float distance = distance_of<kMasked>(tile, query, token);
      const Float weight = exponential(distance);
      result.largest = maximum(result.largest, distance);
      result.weight =
          tile.lists == ScoreTile::Lists::kMaximum ? maximum(result.weight, weight) : result.weight + weight;
    }
  }
  if (tile.lists == ScoreTile::Lists::kMean) {
    result.weight = multiply_add(result.weight, broadcast(1.0f / static_cast<float>(tile.group)), Float{});
  }
  return result;
}

FOLDKV_INLINE Float load_result(const float* numbers, int64_t place, int64_t count) {
  if (numbers == nullptr) return Float{};
  if (count >= kLanes) return load(numbers + place);
  return load_some<NumberFormat::kF32>(reinterpret_cast<const std::byte*>(numbers + place), count);
}
FOLDKV_INLINE void store_result(float* numbers, int64_t place, int64_t count, Float value) {
  if (numbers != nullptr) store_some(numbers + place, value, count);
}

template <bool kMasked>
FOLDKV_INLINE void score_lanes(const ScoreTile& tile, int64_t list, int token) {
  const ListQueries queries = queries_of_list(tile, list);
  const int64_t place = list * tile.list_stride + token;
  const int64_t count = tile.logits.live - token;
  Float sums = load_result(tile.sums, place, count);
  Float squares = load_result(tile.squares, place, count);
  Float maxima = load_result(tile.maxima, place, count);
  Float below = load_result(tile.below, place, count);
  Float entropies = load_result(tile.entropies, place, count);
  for (int64_t row = 0; row < tile.rows; ++row) {
    const ListWeight found = weigh_list<kMasked>(tile, queries, row, token);
    const Float weight = found.weight;
    const float factor = tile.row_weights == nullptr ? 1.0f : tile.row_weights[row];
    sums = multiply_add(weight, broadcast(factor), sums);
    squares = multiply_add(weight, weight, squares);
    maxima = maximum(maxima, weight);
    if (tile.below != nullptr) {
      const Float one = weight < broadcast(tile.thresholds[row]) ? broadcast(1.0f) : Float{};
      below += found.largest > broadcast(-__builtin_inff()) ? one : Float{};
    }
    if (tile.entropies != nullptr) {
      entropies = multiply_add(-weight, logarithm(weight + broadcast(1e-10f)), entropies);
    }
  }
  store_result(tile.sums, place, count, sums);
  store_result(tile.squares, place, count, squares);
  store_result(tile.maxima, place, count, maxima);
  store_result(tile.below, place, count, below);
  store_result(tile.entropies, place, count, entropies);
}

template <bool kMasked>
__attribute__((noinline)) void score_lists(const ScoreTile& tile, int64_t lists) {
  for (int64_t list = 0; list < lists; ++list) {
    for (int token = 0; token < tile.logits.live; token += kLanes) score_lanes<kMasked>(tile, list, token);
  }
}

// Lanes of absent keys are computed like others and never stored.
void score_tile(const ScoreTile& tile) {
  int64_t lists = tile.heads;
  if (tile.lists == ScoreTile::Lists::kEach) lists *= tile.group;
  if (tile.lists == ScoreTile::Lists::kSum) lists = 1;
  if (tile.logits.all_visible) {
    score_lists<false>(tile, lists);
  } else {
    score_lists<true>(tile, lists);
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
