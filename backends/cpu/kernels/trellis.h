#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/codes.h"
#include "backends/cpu/kernels/vector.h"

// The trellis code of backends/interface/trellis.h: strings found for sixteen tokens at once, values looked up.
namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {
namespace {

constexpr int kWindowBits = 8;
constexpr int kWindows = 1 << kWindowBits;
constexpr int kTokens = static_cast<int>(kTrellisTokens);
// Costs are integers below 2^24, so that f32 holds them exactly: after this many steps those of window 0 are taken off.
constexpr int64_t kStepsOfSum = 8;
constexpr float kNever = 1e30f;

struct TrellisStep {
  const float* tables;   // [coordinates][256], in units
  const float* numbers;  // [coordinates][16]
  const float* before;   // costs [256][16]
  float* after;          // likewise
  uint8_t* choices;      // [256 >> bits][16]: which of the windows before was taken
  bool take_off;         // the cost of window 0
};

// Windows that differ only in their oldest bits come to the same windows: the cheapest of them goes on.
template <int kBits, int kCoordinates>
void trellis_step(const TrellisStep& step) {
  constexpr int kBranches = 1 << kBits;
  constexpr int kKept = kWindows >> kBits;
  for (int token = 0; token < kTokens; token += kLanes) {
    const Float base = step.take_off ? load(step.before + token) : Float{};
    Float numbers[kCoordinates];
    FOLDKV_UNROLL for (int v = 0; v < kCoordinates; ++v) numbers[v] = load(step.numbers + v * kTokens + token);
    for (int kept = 0; kept < kKept; ++kept) {
      const float* candidates = step.before + kept * kBranches * kTokens + token;
      Float best = load(candidates);
      Int choice = {};
      FOLDKV_UNROLL for (int branch = 1; branch < kBranches; ++branch) {
        const Float other = load(candidates + branch * kTokens);
        choice = other < best ? broadcast_int(branch) : choice;
        best = other < best ? other : best;
      }
      const Bytes bytes = __builtin_convertvector(choice, Bytes);
      __builtin_memcpy(step.choices + kept * kTokens + token, &bytes, sizeof bytes);
      best -= base;
      FOLDKV_UNROLL for (int branch = 0; branch < kBranches; ++branch) {
        const int window = kept + branch * kKept;
        Float cost = best;
        FOLDKV_UNROLL for (int v = 0; v < kCoordinates; ++v) {
          const Float distance = numbers[v] - broadcast(step.tables[v * kWindows + window]);
          cost += distance * distance;
        }
        store(step.after + window * kTokens + token, cost);
      }
    }
  }
}

FOLDKV_INLINE void trellis_step_of(int bits, int coordinates, const TrellisStep& step) {
  if (bits == 1) return coordinates == 1 ? trellis_step<1, 1>(step) : trellis_step<1, 2>(step);
  if (bits == 2) return trellis_step<2, 1>(step);
  if (bits == 3) return coordinates == 1 ? trellis_step<3, 1>(step) : trellis_step<3, 2>(step);
  trellis_step<4, 1>(step);
}

// Forwards: costs and choices of all steps. Returns where the costs after the last step are.
FOLDKV_INLINE const float* trellis_costs(const TrellisRun& run) {
  float* before = run.costs;
  float* after = run.costs + kWindows * kTokens;
  for (int i = 0; i < kWindows * kTokens; ++i) before[i] = i < kTokens ? 0.0f : kNever;
  const float* numbers = run.numbers;
  uint8_t* choices = run.choices;
  int64_t steps = 0;
  for (int64_t index = 0; index < run.group_count; ++index) {
    const TrellisGroup& group = run.groups[index];
    for (int64_t i = 0; i < group.count; i += group.step, ++steps) {
      const auto coordinates = static_cast<int>(group.count - i < group.step ? group.count - i : group.step);
      trellis_step_of(group.bits, coordinates,
                      {group.tables, numbers, before, after, choices, steps % kStepsOfSum == kStepsOfSum - 1});
      numbers += coordinates * kTokens;
      choices += (kWindows >> group.bits) * kTokens;
      float* const written = after;
      after = before;
      before = written;
    }
  }
  return before;
}

void trellis_search(const TrellisRun& run) {
  const float* costs = trellis_costs(run);
  int window[kTokens] = {};
  for (int candidate = 1; candidate < kWindows; ++candidate) {
    for (int token = 0; token < kTokens; ++token) {
      if (costs[candidate * kTokens + token] < costs[window[token] * kTokens + token]) window[token] = candidate;
    }
  }
  // Backwards along the choices.
  int64_t steps = 0;
  const uint8_t* choices = run.choices;
  for (int64_t index = 0; index < run.group_count; ++index) {
    const TrellisGroup& group = run.groups[index];
    const int64_t some = (group.count + group.step - 1) / group.step;
    steps += some;
    choices += some * (kWindows >> group.bits) * kTokens;
  }
  for (int64_t index = run.group_count - 1; index >= 0; --index) {
    const TrellisGroup& group = run.groups[index];
    const int kept_windows = kWindows >> group.bits;
    for (int64_t n = (group.count + group.step - 1) / group.step - 1; n >= 0; --n) {
      --steps;
      choices -= kept_windows * kTokens;
      for (int token = 0; token < kTokens; ++token) {
        run.windows[steps * kTokens + token] = static_cast<uint8_t>(window[token]);
        const int kept = window[token] % kept_windows;
        window[token] = kept << group.bits | choices[kept * kTokens + token];
      }
    }
  }
}

FOLDKV_INLINE Float look_up(const float* table, Word index) {
#if defined(__AVX512F__)
  return _mm512_mask_i32gather_ps(Float{}, 0xffff, (__m512i)index, table, 4);
#elif defined(__AVX2__)
  return _mm256_i32gather_ps(table, (__m256i)index, 4);
#else
  Float values;
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = table[index[lane]];
  return values;
#endif
}

// scratch as decode_tile, and 64 words more.
void decode_trellis_tile(const TrellisTile& tile, uint32_t* scratch, float* latents) {
  const int64_t steps = (tile.codes.count + tile.step - 1) / tile.step;
  const int64_t words = (steps * tile.codes.bits + 31) / 32;
  // The word before holds the newest bits of the group before in its highest byte.
  for (int64_t token = 0; token < kTile; ++token) {
    const uint8_t* codes = tile.codes.rows + token * tile.codes.row_stride + tile.codes.byte_offset;
    scratch[token] = tile.continues ? static_cast<uint32_t>(codes[-1]) << 24 : 0u;
  }
  transpose_codes(tile.codes, words, scratch + kTile);
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t bit = 32 - kWindowBits + (n + 1) * tile.codes.bits;
    const auto shift = static_cast<int>(bit % 32);
    const uint32_t* words_of_window = scratch + bit / 32 * kTile;
    const bool straddles = shift + kWindowBits > 32;
    for (int token = 0; token < kTile; token += kLanes) {
      Word window = load_words(words_of_window + token) >> shift;
      if (straddles) window |= load_words(words_of_window + kTile + token) << (32 - shift);
      window &= broadcast_word(kWindows - 1);
      const Float scale = load(tile.codes.scales + token);
      for (int64_t v = 0; v < tile.step && n * tile.step + v < tile.codes.count; ++v) {
        store(latents + (n * tile.step + v) * kTile + token, look_up(tile.tables + v * kWindows, window) * scale);
      }
    }
  }
}

// Tokens [0, live) of the tile to rows [live][stride].
void decode_trellis_rows(const TrellisTile& tile, int64_t live, float* latents, int64_t stride) {
  const int64_t steps = (tile.codes.count + tile.step - 1) / tile.step;
  for (int64_t token = 0; token < live; ++token) {
    const uint8_t* codes = tile.codes.rows + token * tile.codes.row_stride + tile.codes.byte_offset;
    const float scale = tile.codes.scales[token];
    float* row = latents + token * stride;
    uint32_t bits = tile.continues ? codes[-1] : 0u;  // the window, above it bits that are read ahead
    int ahead = 0;
    for (int64_t n = 0; n < steps; ++n) {
      if (ahead < tile.codes.bits) {
        bits |= static_cast<uint32_t>(*codes++) << (kWindowBits + ahead);
        ahead += 8;
      }
      bits >>= tile.codes.bits;
      ahead -= tile.codes.bits;
      for (int64_t v = 0; v < tile.step && n * tile.step + v < tile.codes.count; ++v) {
        row[n * tile.step + v] = tile.tables[v * kWindows + (bits & (kWindows - 1))] * scale;
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
