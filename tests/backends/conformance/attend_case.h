#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/interface/operations.h"
#include "tests/support/latent_pages.h"

namespace foldkv::test {

// The tokens of one sequence: sinks in the exact region, then latents, then the rest of the exact region. Queries are
// those of the last exact tokens, or come after everything when there are fewer exact tokens than rows.
struct AttendSequenceCase {
  int64_t latents = 0;
  int64_t exact = 0;
  int64_t rows = 1;
  double size = 1.0;  // of values and of what keys are times queries
};

struct AttendCase {
  std::string name;
  int64_t kv_heads = 2;
  int64_t ratio = 2;  // query heads for each KV head
  int64_t head_size = 16;
  std::vector<AttendSequenceCase> sequences;

  NumberFormat format = NumberFormat::kF16;
  int64_t exact_page_tokens = 32;
  int64_t latent_page_tokens = 64;
  bool grouped = true;      // false: a layer in no group; no sequence may have latents then
  int64_t layers = 2;       // of the group; the last one attends
  int64_t key_latents = 0;  // 0: a width that the layer suggests
  int64_t value_latents = 0;
  int32_t bits = 4;
  int32_t step = 0;  // see LatentBand
  std::vector<LatentBand> tail;  // bands after the first
  int64_t scale_group = 128;
  int64_t correction_rank = 2;
  bool means = true;

  int64_t window = 0;
  double soft_cap = 0.0;
  backend::Pairing pairing = backend::Pairing::kHalfSplit;
  int64_t frequencies = -1;  // -1: half the head
  double rotation_scale = 1.0;
  int64_t first_position = 0;
  bool jumps = false;  // positions leave holes, up to thousands
  double query_size = 1.0;
  double key_size = 1.0;
  bool log_sum_exp = true;
  backend::Arithmetic arithmetic = backend::Arithmetic::kExact;
  // Not 0: sequences are views of so many heads; kv_heads / view_heads of them follow each other, with the same rows.
  int64_t view_heads = 0;

  [[nodiscard]] int64_t key_width() const { return kv_heads * head_size; }
  [[nodiscard]] int64_t view_width() const { return (view_heads == 0 ? kv_heads : view_heads) * head_size; }
  [[nodiscard]] int64_t views() const { return view_heads == 0 ? 1 : kv_heads / view_heads; }
  [[nodiscard]] int64_t query_heads() const { return kv_heads * ratio; }
};

}  // namespace foldkv::test
