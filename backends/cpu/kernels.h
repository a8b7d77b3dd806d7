#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/number_format.h"

// The arithmetic of the cpu backend, compiled once for each instruction set and called through one table.
//
// The files that fill the table may use nothing of the standard library but integer types: an inline function compiled
// there with AVX-512 could become the copy that the linker keeps for everybody.
//
// A tile is 64 token slots. Arrays named [..][64] have tokens in lanes; widths named "padded" are rounded up to
// kWidthPadding numbers. No kernel reads beyond the numbers that its arguments name.
namespace foldkv::backend::cpu {

inline constexpr int64_t kTile = 64;
inline constexpr int64_t kWidthPadding = 16;
inline constexpr int64_t kLargestHead = 512;
inline constexpr int64_t kRotationDigit = 128;      // positions are numbers of base 128
inline constexpr int64_t kRotationLevels = 5;       // up to 2^31
inline constexpr int64_t kRotationColumns = 192;    // of the lowest digit: 64 tokens may begin at any digit

// c [rows][columns] = start + a [rows][depth] * b [depth][columns], each number a chain of fused multiply-adds over
// depth in rising order, whatever the blocking. columns is a multiple of kWidthPadding.
struct MatrixProduct {
  enum class Start : int32_t {
    kZero,
    kRow,       // row_start[row]
    kKeep,      // c
    kScaled,    // c * row_start[row]
  };
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  Start start = Start::kZero;
  const float* row_start = nullptr;
};

// y [rows][columns] = x [rows][depth] * weight [columns][depth]^T + bias. Lane l of a sum takes the numbers l,
// l + lanes, ... in rising order, then lanes are added pairwise: a result depends on nothing but its two rows.
struct RowProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const std::byte* weight = nullptr;
  NumberFormat weight_format = NumberFormat::kF32;
  int64_t weight_stride = 0;  // numbers
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
};

// What prepare_rotation wrote (see rotation_table.h). A number is cosine or sine of digit * 128^level * frequency.
struct RotationTable {
  int64_t pairs = 0;
  bool interleaved = false;
  const float* low_cosines = nullptr;   // [pairs][kRotationColumns], lowest digit, times the scale
  const float* low_sines = nullptr;
  const float* row_cosines[kRotationLevels] = {};  // [digits][pairs]; level 0 times the scale
  const float* row_sines[kRotationLevels] = {};
};

// Codes of a scale group in rows of 64 tokens: rows [64][row_stride] hold the group's bytes from column byte_offset on
// and may be read up to 64 bytes beyond them.
struct CodeTile {
  const uint8_t* rows = nullptr;
  int64_t row_stride = 0;
  int64_t byte_offset = 0;
  int64_t count = 0;  // coordinates
  int bits = 0;
  const float* scales = nullptr;  // [64]
};

// Codes of a trellis group, likewise; see backends/interface/trellis.h. The byte before the group's may be read too.
struct TrellisTile {
  CodeTile codes;      // bits: of a step
  int64_t step = 1;    // coordinates of a step
  bool continues = false;
  const float* tables = nullptr;  // [step][256], in units of the scale
};

// Fast arithmetic takes coordinates as integers of 8 bits, four to a word of 32 bits. Latents lie in tiles [words][64]:
// tokens are lanes and word w holds coordinates 4 w to 4 w + 3. Rows of a basis are rows of words.
//
// Codes of one scale group of 64 tokens. A group begins with a word; beyond its coordinates the last word is zero.
struct IntegerGroup {
  const uint8_t* const* rows = nullptr;  // [64] codes of the plane of each token; null: absent, zeros
  int64_t row_bytes = 0;                 // that may be read
  int64_t byte_offset = 0;               // of the group in a row
  int64_t count = 0;                     // coordinates
  int bits = 0;
  const int8_t* tables = nullptr;  // trellis: [step][256]; null: uniform codes
  int64_t step = 1;
  bool continues = false;
  uint32_t* words = nullptr;  // written: [words of the group][64]
};

// output [rows][64] = row_start + row_scale * sum over groups of scale[token] * (basis * latents). Groups may meet the
// same latents again with the fine words of the basis.
struct IntegerScale {
  int64_t first_word = 0;  // of the latents
  int64_t word_count = 0;
  int64_t basis_word = 0;  // in a row of the basis
  const float* scales = nullptr;  // [64]
  int32_t* starts = nullptr;      // [64], written by start_integer_sums
};
struct IntegerProduct {
  int64_t rows = 0;
  const std::byte* basis = nullptr;  // rows that integer_row wrote
  int64_t basis_stride = 0;          // bytes
  const uint32_t* latents = nullptr;
  const IntegerScale* groups = nullptr;
  int64_t group_count = 0;
  const float* row_start = nullptr;  // [rows]; null: zeros
  float* output = nullptr;
};
// A row of a basis as integers: a scale in f32; at kIntegerRowStart fine words of its first kFineNumbers coordinates, what
// rounding to integers has lost in units of kFineUnit; then its words.
inline constexpr int64_t kWordNumbers = 4;
inline constexpr int32_t kLargestInteger = 127;
inline constexpr int64_t kIntegerRowStart = 64;
inline constexpr int64_t kFineNumbers = 128;
inline constexpr int64_t kFineWords = kFineNumbers / kWordNumbers;
inline constexpr float kFineUnit = 1.0f / 254.0f;  // half a step is 127 of them

// A run of trellis groups that share one bit string, for 16 tokens at once.
inline constexpr int64_t kTrellisTokens = 16;
struct TrellisGroup {
  int64_t count = 0;  // coordinates
  int bits = 0;       // of a step
  int64_t step = 1;
  const float* tables = nullptr;  // [step][256], integers
};
struct TrellisRun {
  const TrellisGroup* groups = nullptr;
  int64_t group_count = 0;
  const float* numbers = nullptr;  // [coordinates][16], integers
  float* costs = nullptr;          // scratch [2][256][16]
  uint8_t* choices = nullptr;      // scratch, for each step [256 >> bits][16]
  uint8_t* windows = nullptr;      // [steps][16], written: those of the nearest string
};

// How products of queries and the keys of a tile become logits, and which of them are visible.
struct LogitTile {
  const int32_t* key_positions = nullptr;  // [64]
  int64_t live = 0;                        // keys beyond are absent
  bool all_visible = false;                // every live key is visible to every row
  float scale = 0.0f;
  float soft_cap = 0.0f;                   // 0: off
  int64_t window = 0;                      // 0: off
};

// One tile of the running softmax. Scores become weights exp(score - maximum), 0 where a key is not visible.
struct SoftmaxTile {
  int64_t rows = 0;
  float* scores = nullptr;               // [rows][64]
  const int32_t* query_positions = nullptr;  // [rows]
  LogitTile logits;
  float* maxima = nullptr;               // [rows], minus infinity before the first visible key
  float* sums = nullptr;                 // [rows]
  float* factors = nullptr;              // [rows], written: what earlier sums of the row are multiplied by
};

// What the keys of a tile got from rows of queries: see ScoreRequest. Queries are [heads][rows][group], heads being KV
// heads. Results are [lists][list_stride], of which the numbers of live keys are read and written; null: not wanted.
struct ScoreTile {
  enum class Lists : int32_t {
    kEach,     // heads * group
    kMean,     // heads, over the group
    kMaximum,  // heads, over the group
    kSum,      // 1, over all queries of a row
  };
  Lists lists = Lists::kEach;
  int64_t heads = 0;
  int64_t rows = 0;
  int64_t group = 0;
  const float* scores = nullptr;             // [queries][64]
  const int32_t* query_positions = nullptr;  // [queries]
  const float* log_sum_exp = nullptr;        // [queries]
  LogitTile logits;
  const float* row_weights = nullptr;  // [rows]; null: ones
  const float* thresholds = nullptr;   // [rows]
  float* sums = nullptr;
  float* squares = nullptr;
  float* maxima = nullptr;
  float* below = nullptr;
  float* entropies = nullptr;
  int64_t list_stride = 0;
};

// total = total * total_factor + part * part_factor
struct MergeRow {
  int64_t width = 0;  // multiple of kWidthPadding
  float* total = nullptr;
  const float* part = nullptr;
  float total_factor = 0.0f;
  float part_factor = 0.0f;
};

// output = (exact + rebuilt + latent_mass * mean) / sum
struct FinishRow {
  int64_t width = 0;
  const float* exact = nullptr;
  const float* rebuilt = nullptr;   // null: none
  const float* mean = nullptr;      // null: zero
  float latent_mass = 0.0f;
  float sum = 0.0f;
  float* output = nullptr;
};

// A latent row to codes: see architecture.md decision 7. f16 bits of the scale, or kBadScale.
struct QuantizeGroup {
  const float* latents = nullptr;
  int64_t count = 0;
  int bits = 0;
  uint8_t* codes = nullptr;  // bias-coded bit string
};
inline constexpr uint32_t kBadScale = 0xffffffffu;

// y [rows][columns] = x [rows][depth] * w [columns][depth]^T, in double precision with a fixed order per number.
struct WideRowProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const double* x = nullptr;
  int64_t x_stride = 0;
  const double* w = nullptr;
  int64_t w_stride = 0;
  double* y = nullptr;
  int64_t y_stride = 0;
};

// sum [rows][columns] += left^T right over tokens in rising order, in double precision.
// columns is a multiple of kWidthPadding.
struct OuterSum {
  int64_t tokens = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  const double* left = nullptr;   // [tokens][rows]
  int64_t left_stride = 0;
  const double* right = nullptr;  // [tokens][columns]
  int64_t right_stride = 0;
  double* sum = nullptr;
  int64_t sum_stride = 0;
};

struct Kernels {
  const char* name;
  int64_t lanes;

  // Numbers. from_f32 tells whether all results are finite.
  void (*to_f32)(NumberFormat format, const void* input, int64_t count, float* output);
  bool (*from_f32)(NumberFormat format, const float* input, int64_t count, void* output);
  bool (*all_finite)(NumberFormat format, const void* input, int64_t count);
  void (*add_in_double)(const float* input, int64_t count, double* sums);
  void (*subtract)(const float* input, const float* subtrahend, int64_t count, float* output);
  void (*to_f64)(const float* input, int64_t count, double* output);
  void (*exponential)(const float* input, int64_t count, float* output);
  void (*hyperbolic_tangent)(const float* input, int64_t count, float* output);

  // Heads in rows.
  void (*norm_head)(const float* gain, double epsilon, int64_t head_size, float* head);
  void (*rotation_row)(const RotationTable& table, int32_t position, float* cosines, float* sines);
  void (*rotate_row)(const RotationTable& table, const float* cosines, const float* sines, float* head);

  // Tiles. rows[t] is null for an absent token, whose lane becomes zero.
  void (*transpose_tile)(NumberFormat format, const std::byte* const* rows, int64_t width, float* output);  // [w][64]
  void (*untranspose_tile)(const float* input, int64_t width, int64_t live, float* output, int64_t output_stride);
  void (*rotation_tile)(const RotationTable& table, const int32_t* positions, float* scratch, float* cosines,
                        float* sines);  // scratch: [64][padded pairs] twice; output [pairs][64]
  void (*rotate_tile)(const RotationTable& table, const float* cosines, const float* sines, float* head);
  void (*decode_tile)(const CodeTile& tile, uint32_t* scratch, float* latents);  // [count][64]
  void (*decode_rows)(const CodeTile& tile, int64_t live, float* latents, int64_t stride);  // [live][stride]
  void (*decode_trellis_tile)(const TrellisTile& tile, uint32_t* scratch, float* latents);  // 64 words more of scratch
  void (*decode_trellis_rows)(const TrellisTile& tile, int64_t live, float* latents, int64_t stride);
  // Fast arithmetic.
  bool has_integers = false;  // the four functions that follow are there
  void (*integer_row)(const float* row, int64_t count, std::byte* output) = nullptr;
  void (*decode_integers)(const IntegerGroup& group) = nullptr;
  void (*start_integer_sums)(const IntegerProduct& product) = nullptr;  // of its groups, once for all rows of a tile
  void (*integer_product)(const IntegerProduct& product) = nullptr;
  void (*softmax_tile)(const SoftmaxTile& tile);
  void (*score_tile)(const ScoreTile& tile);
  void (*merge_row)(const MergeRow& row);
  void (*finish_row)(const FinishRow& row);

  // Products.
  void (*matrix_product)(const MatrixProduct& product);
  void (*row_product)(const RowProduct& product);
  void (*wide_row_product)(const WideRowProduct& product);
  void (*outer_sum)(const OuterSum& outer);

  uint32_t (*quantize_group)(const QuantizeGroup& group);
  void (*trellis_search)(const TrellisRun& run);
};

// Kernels of an instruction set ("" or "best": the best of this machine), or null when this machine or build has none
// of that name.
[[nodiscard]] const Kernels* find_kernels(const char* name);
// Names separated by ", ", the best first.
[[nodiscard]] const char* available_kernels();

}  // namespace foldkv::backend::cpu
