#include <algorithm>

#include "tests/backends/conformance/attend_problem.h"

namespace foldkv::test {
namespace {

enum class Regions { kExact, kLatent, kBoth };

AttendSequenceCase tokens_in(Regions regions, int64_t tokens, int64_t rows) {
  switch (regions) {
    case Regions::kExact: return {0, tokens, rows};
    case Regions::kLatent: return {tokens, 0, rows};
    case Regions::kBoth: return {tokens, std::max<int64_t>(rows, std::min<int64_t>(tokens, 9)), rows};
  }
  return {};
}

constexpr Regions kRegions[] = {Regions::kExact, Regions::kLatent, Regions::kBoth};

void add_head_sizes(std::vector<AttendCase>& cases) {
  const std::vector<int64_t> ratios = {1, 2, 3, 5, 7, 9};
  size_t turn = 0;
  for (const int64_t head_size : {1, 2, 3, 6, 8, 16, 64, 80, 96, 128, 256}) {
    for (const Regions regions : kRegions) {
      AttendCase attend_case{absl::StrCat("head size ", head_size)};
      attend_case.head_size = head_size;
      attend_case.kv_heads = turn % 2 == 0 ? 1 : 2;
      attend_case.ratio = ratios[turn % ratios.size()];
      attend_case.pairing = turn % 4 < 2 ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved;
      attend_case.bits = static_cast<int32_t>(2 + turn % 7);
      attend_case.sequences = {tokens_in(regions, 65, turn % 2 == 0 ? 3 : 1)};
      cases.push_back(attend_case);
      ++turn;
    }
  }
}

void add_ratios(std::vector<AttendCase>& cases) {
  for (const int64_t ratio : {1, 2, 3, 5, 7, 9}) {
    for (const Regions regions : kRegions) {
      AttendCase attend_case{absl::StrCat("ratio ", ratio)};
      attend_case.kv_heads = 3;
      attend_case.ratio = ratio;
      attend_case.sequences = {tokens_in(regions, 77, 2)};
      cases.push_back(attend_case);
    }
  }
}

// Field report 52: every size of a page, a tile or a window, one less and one more.
void add_token_counts(std::vector<AttendCase>& cases) {
  for (const int64_t tokens : {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 1000}) {
    for (const Regions regions : kRegions) {
      for (const int64_t rows : {1, 5}) {
        AttendCase attend_case{absl::StrCat(tokens, " tokens")};
        attend_case.head_size = 8;
        attend_case.sequences = {tokens_in(regions, tokens, rows)};
        cases.push_back(attend_case);
      }
    }
  }
}

void add_formats(std::vector<AttendCase>& cases) {
  for (const NumberFormat format : {NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16}) {
    for (const int64_t page_tokens : {1, 7, 32}) {
      AttendCase attend_case{absl::StrCat(std::string(name_of(format)), " in pages of ", page_tokens)};
      attend_case.format = format;
      attend_case.exact_page_tokens = page_tokens;
      attend_case.latent_page_tokens = page_tokens + 2;
      attend_case.sequences = {{50, 40, 3}};
      cases.push_back(attend_case);
      attend_case.name += ", in no group";
      attend_case.grouped = false;
      attend_case.sequences = {{0, 40, 3}, {0, 0, 1}};
      cases.push_back(attend_case);
    }
  }
}

// Groups of 1, 2 and all layers; widths below, at and above the layer's; bands; no means; no correction.
void add_groups(std::vector<AttendCase>& cases) {
  for (const int64_t layers : {1, 2, 5}) {
    for (const int64_t latents : {1, 20, 32, 130}) {
      for (const int64_t rank : {0, 1, 6}) {
        AttendCase attend_case{absl::StrCat("group of ", layers)};
        attend_case.layers = layers;
        attend_case.key_latents = latents;
        attend_case.value_latents = latents + 5;
        attend_case.correction_rank = rank;
        attend_case.scale_group = layers == 1 ? 5 : 64;
        attend_case.means = rank != 1;
        attend_case.sequences = {{70, 6, 2}};
        cases.push_back(attend_case);
      }
    }
  }
  for (int32_t bits = 2; bits <= 8; ++bits) {
    AttendCase attend_case{absl::StrCat(bits, " bits")};
    attend_case.bits = bits;
    attend_case.sequences = {{70, 6, 2}};
    cases.push_back(attend_case);
    attend_case.name += " and other bands";
    attend_case.tail = {{9, 8}, {20, 2}, {7, 0}};
    attend_case.scale_group = 16;
    cases.push_back(attend_case);
  }
  for (const LatentBand& band : trellis_bands(0)) {
    AttendCase attend_case{absl::StrCat("a trellis of ", band.bits, " bits for ", band.step)};
    attend_case.bits = band.bits;
    attend_case.step = band.step;
    attend_case.sequences = {{70, 6, 2}};
    attend_case.scale_group = 16;
    attend_case.tail = {{9, 8}, {20, 3, 2}, {21, 1, 1}, {7, 0}};
    cases.push_back(attend_case);
  }
}

// Field reports 51 and 53.
void add_windows(std::vector<AttendCase>& cases) {
  for (const int64_t window : {1, 2, 8, 64, 1000}) {
    for (const Regions regions : kRegions) {
      for (const int64_t rows : {1, 8}) {
        AttendCase attend_case{"window"};
        attend_case.window = window;
        attend_case.sequences = {tokens_in(regions, 90, rows)};
        cases.push_back(attend_case);
      }
    }
    AttendCase jumps{"window and jumps"};
    jumps.window = window;
    jumps.jumps = true;
    jumps.sequences = {{60, 50, 8}};
    cases.push_back(jumps);
  }
}

void add_numbers(std::vector<AttendCase>& cases) {
  for (const Regions regions : kRegions) {
    AttendCase attend_case{"soft cap 50"};
    attend_case.soft_cap = 50.0;
    attend_case.query_size = 30.0;
    attend_case.sequences = {tokens_in(regions, 60, 2)};
    cases.push_back(attend_case);
    attend_case = {"soft cap 30, small logits"};
    attend_case.soft_cap = 30.0;
    attend_case.sequences = {tokens_in(regions, 60, 2)};
    cases.push_back(attend_case);
    attend_case = {"keys and values 1000 times"};
    attend_case.format = NumberFormat::kF32;
    attend_case.sequences = {tokens_in(regions, 60, 2)};
    attend_case.sequences[0].size = 1000.0;
    cases.push_back(attend_case);
    attend_case = {"large logits without a cap"};
    attend_case.query_size = 100.0;
    attend_case.sequences = {tokens_in(regions, 60, 2)};
    cases.push_back(attend_case);
    attend_case = {"position jumps, interleaved, partial rotation, magnitude factor"};
    attend_case.pairing = backend::Pairing::kInterleaved;
    attend_case.frequencies = 5;
    attend_case.rotation_scale = 1.2;
    attend_case.jumps = true;
    attend_case.sequences = {tokens_in(regions, 150, 4)};
    cases.push_back(attend_case);
    for (const int64_t position : {131000, 2147480000}) {
      attend_case = {absl::StrCat("positions from ", position)};
      attend_case.first_position = position;
      attend_case.sequences = {tokens_in(regions, 150, 4)};
      cases.push_back(attend_case);
    }
    attend_case = {"no rotation, no log-sum-exp"};
    attend_case.frequencies = 0;
    attend_case.log_sum_exp = false;
    attend_case.sequences = {tokens_in(regions, 60, 2)};
    cases.push_back(attend_case);
  }
}

// Field reports 11 and 55: lengths 0 and 1 beside others, one of them with numbers 1000 times larger.
void add_batches(std::vector<AttendCase>& cases) {
  AttendCase batch{"a batch"};
  batch.format = NumberFormat::kF32;
  batch.sequences = {{0, 0, 1}, {0, 1, 1}, {200, 37, 3}, {65, 0, 1, 1000.0}, {0, 70, 70}, {130, 68, 1}, {1, 1, 1}};
  cases.push_back(batch);
  batch.name = "a batch with a window and a cap";
  batch.window = 40;
  batch.soft_cap = 20.0;
  batch.head_size = 24;
  batch.ratio = 3;
  cases.push_back(batch);
  AttendCase prefill{"prefill over latents"};
  prefill.head_size = 32;
  prefill.kv_heads = 1;
  prefill.ratio = 3;
  prefill.sequences = {{300, 100, 64}, {0, 129, 129}};
  cases.push_back(prefill);
  AttendCase decode{"decode of a batch"};
  decode.head_size = 64;
  decode.kv_heads = 3;
  decode.ratio = 3;
  decode.layers = 4;
  decode.sequences = {{500, 68, 1}, {10, 68, 1}, {0, 12, 1}};
  cases.push_back(decode);
}

// Logits in the tens leave one token, whose choice is a matter of small differences.
constexpr double kLargestFastQuery = 3.0;

void add_fast(std::vector<AttendCase>& cases) {
  const std::vector<AttendCase> exact = cases;
  for (AttendCase attend_case : exact) {
    if (attend_case.query_size > kLargestFastQuery) continue;
    attend_case.name += ", fast";
    attend_case.arithmetic = backend::Arithmetic::kFast;
    cases.push_back(attend_case);
  }
}

Row row_of(const AttendCase& attend_case) {
  return {describe(attend_case),
          [attend_case](backend::Backend& backend, std::byte fill) { return run_attend(attend_case, backend, fill); }};
}

Row random_row(Random& random) {
  AttendCase attend_case{"random"};
  attend_case.kv_heads = random.between(1, 3);
  attend_case.ratio = random.between(1, 9);
  attend_case.head_size = random.between(1, 48);
  attend_case.format =
      random.pick(std::vector<NumberFormat>{NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16});
  attend_case.exact_page_tokens = random.between(1, 40);
  attend_case.latent_page_tokens = random.between(1, 70);
  attend_case.layers = random.between(1, 4);
  attend_case.key_latents = random.between(1, 80);
  attend_case.value_latents = random.between(1, 80);
  attend_case.bits = static_cast<int32_t>(random.between(2, 8));
  attend_case.scale_group = random.between(1, 90);
  attend_case.correction_rank = std::min(random.between(0, 5), attend_case.layers * attend_case.key_width());
  attend_case.means = random.chance(0.7);
  attend_case.window = random.chance(0.3) ? random.between(1, 90) : 0;
  attend_case.soft_cap = random.chance(0.3) ? random.uniform(1.0, 60.0) : 0.0;
  attend_case.pairing = random.chance(0.5) ? backend::Pairing::kHalfSplit : backend::Pairing::kInterleaved;
  attend_case.frequencies = random.between(0, attend_case.head_size / 2);
  attend_case.jumps = random.chance(0.3);
  attend_case.query_size = random.uniform(0.2, 3.0);
  attend_case.log_sum_exp = random.chance(0.8);
  if (random.chance(0.5)) attend_case.arithmetic = backend::Arithmetic::kFast;
  attend_case.grouped = random.chance(0.85);
  if (random.chance(0.3)) attend_case.tail = {{random.between(1, 30), 3}, {random.between(1, 30), 0}};
  attend_case.first_position = random.chance(0.3) ? random.between(0, 2000000000) : 0;
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    const int64_t latents = attend_case.grouped && random.chance(0.7) ? random.between(0, 140) : 0;
    attend_case.sequences.push_back({latents, random.between(0, 90), random.between(1, 6)});
  }
  return row_of(attend_case);
}

}  // namespace

std::string describe(const AttendCase& attend_case) {
  std::string text = absl::StrCat(attend_case.name, ": ", attend_case.query_heads(), " / ", attend_case.kv_heads,
                                  " heads of ", attend_case.head_size, ", window ", attend_case.window);
  if (attend_case.view_heads > 0) absl::StrAppend(&text, ", views of ", attend_case.view_heads);
  for (const AttendSequenceCase& sequence : attend_case.sequences) {
    absl::StrAppend(&text, ", ", sequence.latents, " + ", sequence.exact, " tokens ", sequence.rows, " rows");
  }
  return text;
}

std::vector<AttendCase> attend_view_cases() {
  std::vector<AttendCase> cases;
  for (const int64_t view_heads : {1, 2, 4}) {
    for (const int64_t head_size : {8, 64, 80}) {
      for (const int64_t rows : {1, 5, 70}) {
        AttendCase views{"views"};
        views.kv_heads = 4;
        views.ratio = head_size == 80 ? 1 : 3;
        views.head_size = head_size;
        views.view_heads = view_heads;
        views.grouped = head_size != 64;
        views.window = head_size == 80 ? 40 : 0;
        for (int64_t round = 0; round < (rows == 1 ? 3 : 1); ++round) {
          for (int64_t view = 0; view < views.views(); ++view) {
            views.sequences.push_back({0, (view + 3 * round) * 97 % 600 + (view == 2 ? 0 : rows), rows});
          }
        }
        cases.push_back(views);
      }
    }
  }
  return cases;
}

std::vector<AttendCase> attend_cases() {
  std::vector<AttendCase> cases;
  add_head_sizes(cases);
  add_ratios(cases);
  add_token_counts(cases);
  add_formats(cases);
  add_groups(cases);
  add_windows(cases);
  add_numbers(cases);
  add_batches(cases);
  add_fast(cases);
  return cases;
}

OperationRows attend_rows() {
  OperationRows table{Operation::kAttend, {}, random_row};
  for (const AttendCase& attend_case : attend_cases()) table.rows.push_back(row_of(attend_case));
  for (const AttendCase& attend_case : attend_view_cases()) table.rows.push_back(row_of(attend_case));
  return table;
}

}  // namespace foldkv::test
