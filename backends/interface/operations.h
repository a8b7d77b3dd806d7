#pragma once

#include <cstdint>
#include <span>

#include "backends/interface/layout.h"
#include "runtime/base/tensor_view.h"

// What a backend is asked to do. All pointers are memory of the backend's device unless a comment says host.
namespace foldkv::backend {

// ------------------------------------------------------------------------------------------- products

// y [rows, columns] = x [rows, inner] * weight [columns, inner]^T + bias
struct ProductShape {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  NumberFormat weight_format = NumberFormat::kF32;
  bool deterministic = false;  // results of a row may not depend on the number of rows

  bool operator==(const ProductShape&) const = default;
};

struct ProductRequest {
  const float* x = nullptr;  // dense
  TensorView weight;         // [columns, inner]
  TensorView bias;           // 1 x columns, or absent
  float* y = nullptr;        // dense
  std::byte* workspace = nullptr;
};

// ------------------------------------------------------------------------------------------- rotation

enum class Pairing : int32_t { kHalfSplit = 1, kInterleaved = 2 };

// Rotary position embedding of one kind of layer. rotated = scale * R(position * frequency) on the first
// 2 * frequency_count numbers of a head, the rest pass through.
struct Rotation {
  Pairing pairing = Pairing::kHalfSplit;
  int64_t frequency_count = 0;  // 0: no rotation
  double scale = 1.0;
  const double* inverse_frequencies = nullptr;  // host
  const std::byte* prepared = nullptr;          // what Backend::prepare_rotation wrote
};

// Rows of heads from whatever the host has, normed and rotated when asked, to dense f32.
struct PrepareHeadsRequest {
  TensorView input;  // [rows, heads * head_size]
  int64_t heads = 0;
  int64_t head_size = 0;
  const float* norm = nullptr;  // [head_size]; null: none
  double norm_epsilon = 0.0;
  Rotation rotation;
  const int32_t* positions = nullptr;  // [rows], host; unused without rotation
  float* output = nullptr;             // [rows, heads, head_size]
};

// ------------------------------------------------------------------------------------------- exact region

// Norms keys, converts keys and values and writes them to slots [first_slot, first_slot + rows).
// A number that is not finite in the region's format is an error (numeric, argument "key" or "value").
struct AppendRequest {
  TensorView keys;    // [rows, width]
  TensorView values;  // [rows, width]
  int64_t head_size = 0;
  const float* key_norm = nullptr;  // [head_size]; null: none
  double norm_epsilon = 0.0;
  ExactLayout layout;
  ExactRegion region;  // token_count is not looked at
  int64_t first_slot = 0;
};

// Moves rows of a region down to [to, to + count), in place: rows [from, from + count) with to <= from, or chosen ones.
// Rows that are read may lie among those that are written.
struct MoveRequest {
  ExactLayout layout;
  ExactRegion region;
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
  const int32_t* slots = nullptr;  // host [count], rising, slots[i] >= to + i; null: from, from + 1 ...

  [[nodiscard]] int64_t slot(int64_t index) const { return slots == nullptr ? from + index : slots[index]; }
};

// ------------------------------------------------------------------------------------------- attention

// What products of attention may be made of.
//
// Exact: numbers of 32 bits. A result differs from the reference's by rounding only.
// Fast: where the machine has instructions for it, numbers of 16 bits, or of 8 where latents have codes of 8 bits or
// fewer anyway, with sums of 32 bits. Errors stay far below those of the codes; backends state bounds.
// Either way a result depends on nothing but its own inputs, on one machine.
enum class Arithmetic : int32_t { kExact = 0, kFast = 1 };

struct AttentionRules {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  double scale = 0.0;
  double soft_cap = 0.0;  // 0: off
  int64_t window = 0;     // 0: all; else keys at positions in (query - window, query]
  Rotation rotation;
};

// What one layer needs of its layer group. Slices of stacked arrays: this layer's rows only.
struct LatentLayer {
  const LatentLayout* layout = nullptr;  // null: the layer is in no group
  const float* key_basis = nullptr;      // [key width][keys.width]; null: latents are the rows themselves
  const float* value_basis = nullptr;    // [key width][values.width], likewise
  int64_t first_row = 0;                 // of this layer in stacked vectors (means, correction basis)
  const std::byte* fast_key_basis = nullptr;  // of the whole group: prepare_fast_basis; null: exact arithmetic only
};

// A view: rows of queries and the tokens that they look at. Heads that keep different tokens come as views of their
// own, several entries with the same rows; all entries of a request have the same number of heads.
struct AttendSequence {
  ExactRegion exact;  // the new tokens included
  PositionRegion exact_positions;
  LatentRegion latent;
  PositionRegion latent_positions;
  int64_t first_row = 0;  // of this sequence in queries, context
  int64_t row_count = 0;
  const int32_t* query_positions = nullptr;  // [row_count], host
  int64_t first_head = 0;  // KV heads that these tokens belong to
  int64_t head_count = 0;  // 0: all. A view of some heads only has no latents: latent.token_count is 0

  [[nodiscard]] int64_t kv_heads(const AttentionRules& rules) const {
    return head_count == 0 ? rules.kv_heads : head_count;
  }
};

// One softmax over the exact region and the rebuilt latents of each sequence; a key is visible to a query when its
// position is not beyond the query's (and inside the window). Values of latents are summed in latent space.
// No visible key: zeros, log-sum-exp minus infinity. The result of a row depends on nothing but its query and its
// sequence's regions: not on other rows, not on the number of threads. A view of some heads writes the results of their
// queries only, those that a view of all heads with the same tokens gives, to the bit.
struct AttendRequest {
  AttentionRules rules;     // of the layer, all heads
  ExactLayout exact_layout; // width: heads of a view * head size
  LatentLayer latent;
  Arithmetic arithmetic = Arithmetic::kExact;
  std::span<const AttendSequence> sequences;
  const float* queries = nullptr;     // [rows, query_heads, head_size], rotated
  float* context = nullptr;           // [rows, query_heads, head_size]
  float* log_sum_exp = nullptr;       // [rows, query_heads], or null
  std::byte* workspace = nullptr;     // of attend_workspace() bytes
};

// The numbers that the workspace of attend depends on: maxima over the sequences of the step and its layers.
struct AttendShape {
  int64_t query_heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t key_latent_width = 0;    // stored coordinates
  int64_t value_latent_width = 0;  // likewise
  int64_t correction_rank = 0;
  int64_t rows = 0;         // of queries; those that views of some heads share count once
  int64_t sequences = 0;    // entries
  int64_t total_tokens = 0; // cached tokens of all entries, the new ones included
};

// ------------------------------------------------------------------------------------------- scores

// One list of numbers for each query head; for each KV head, the mean or maximum over its query heads; or one list, the
// sum over all query heads of the view. Heads are taken together row by row, before rows are summed.
enum class ScoreHeads : int32_t { kQueryHeads = 0, kGroupMean = 1, kGroupMaximum = 2, kAllHeads = 3 };

// What each cached token of a view got from some rows of queries. A is the weight that attend gives the token,
// exp(logit - log_sum_exp): 0 where the token is not visible and for rows whose log-sum-exp is minus infinity, which
// see nothing.
//
// Results are [lists][list_stride], of which as many numbers as the view has tokens: latents, then exact tokens. They
// are added to (maxima: raised), row after row in rising order, so that a prompt cut into pieces gives the same bits.
// Null: not wanted.
struct ScoreRequest {
  AttentionRules rules;
  ExactLayout exact_layout;  // as in AttendRequest
  LatentLayer latent;
  Arithmetic arithmetic = Arithmetic::kExact;  // that the log-sum-exp was found with
  AttendSequence sequence;   // the view and its rows
  const float* queries = nullptr;      // [rows, query_heads, head_size], rotated; row r is sequence.first_row + r
  const float* log_sum_exp = nullptr;  // [rows, query_heads], as attend wrote it for the same tokens
  const float* row_weights = nullptr;  // host [row_count], factors of sums only; null: ones
  const float* thresholds = nullptr;   // host [row_count]; needed for below
  ScoreHeads heads = ScoreHeads::kQueryHeads;
  float* sums = nullptr;       // of A
  float* squares = nullptr;    // of A^2
  float* maxima = nullptr;     // of A; not below 0 before
  float* below = nullptr;      // the number of rows that see the token with A < threshold
  float* entropies = nullptr;  // of -A log(A + 1e-10)
  int64_t list_stride = 0;     // numbers
  std::byte* workspace = nullptr;  // of score_workspace() bytes

  [[nodiscard]] int64_t lists() const {
    const int64_t kv_heads = sequence.kv_heads(rules);
    if (heads == ScoreHeads::kAllHeads) return 1;
    return heads == ScoreHeads::kQueryHeads ? kv_heads * (rules.query_heads / rules.kv_heads) : kv_heads;
  }
};

// ------------------------------------------------------------------------------------------- latents

// The stacked rows of tokens [first_slot, first_slot + count), or of chosen ones, of a layer group's exact regions.
struct StackedRows {
  std::span<const ExactRegion> layers;  // in the order of the group; host array
  ExactLayout layout;
  Side side = Side::kKeys;
  int64_t first_slot = 0;
  int64_t count = 0;
  const int32_t* slots = nullptr;  // host [count], rising; null: first_slot, first_slot + 1 ...

  [[nodiscard]] int64_t width() const { return static_cast<int64_t>(layers.size()) * layout.width; }
  [[nodiscard]] int64_t slot(int64_t index) const { return slots == nullptr ? first_slot + index : slots[index]; }
};

// Mean over tokens of stacked rows, summed in double precision, rounded to f16. Error (numeric) beyond f16.
struct MeanRequest {
  StackedRows rows;
  uint16_t* mean = nullptr;  // [rows.width()]
  std::byte* workspace = nullptr;
};

// latent = basis^T (row - mean), where basis may be a projection of its own, quantized into slots
// [first_latent_slot, +count) of latent pages (methods.md 1.5; architecture.md decision 7). Slots and count are
// multiples of layout->run_tokens().
// Error (numeric): non-finite latent or a scale beyond f16.
struct EncodeRequest {
  StackedRows rows;
  const uint16_t* mean = nullptr;  // f16 [rows.width()], null: zero
  const float* basis = nullptr;    // [rows.width()][plane width]; null: the latent is row - mean itself
  const LatentLayout* layout = nullptr;
  std::byte* const* pages = nullptr;
  int64_t first_latent_slot = 0;
  std::byte* workspace = nullptr;
};

// Rebuilt rows of latent slots [first, first + count): basis * latent + mean (+ correction for keys), unrotated.
// first_row / row_count choose a slice of the stacked vector (one layer, or all).
struct RebuildRequest {
  const LatentLayout* layout = nullptr;
  LatentRegion region;
  Side side = Side::kKeys;
  int64_t first = 0;
  int64_t count = 0;
  const float* basis = nullptr;  // the slice's rows [row_count][plane width]; null: as in LatentLayer
  int64_t first_row = 0;         // of the slice, for mean and correction basis. Merged planes: slices of whole layers
  int64_t row_count = 0;
  float* output = nullptr;       // [count][row_count]
  std::byte* workspace = nullptr;
};

// One pass of the correction's range finder over the key residual E = rows - rebuilt (without correction):
// sketch [width][columns] = E^T (E test), sums in double precision in the order of tokens.
struct SketchRequest {
  StackedRows rows;  // side: keys
  const LatentLayout* layout = nullptr;
  LatentRegion region;
  int64_t first_latent_slot = 0;
  const float* basis = nullptr;   // stacked
  const double* test = nullptr;   // host [width][columns]
  int64_t columns = 0;
  double* sketch = nullptr;       // host [width][columns], written
  std::byte* workspace = nullptr;
};

// Coefficients of the residual on the sequence's correction basis, into the latent pages (f16).
struct CoefficientsRequest {
  StackedRows rows;  // side: keys
  const LatentLayout* layout = nullptr;
  LatentRegion region;  // correction_basis set
  int64_t first_latent_slot = 0;
  const float* basis = nullptr;
  std::byte* workspace = nullptr;
};

// Moves tokens of latent pages down like MoveRequest: codes, scales and coefficients, in whatever code they are.
// Unsupported error for layouts with run_tokens() above 1, whose scales and merged heads belong to several tokens.
struct MoveLatentsRequest {
  const LatentLayout* layout = nullptr;
  std::byte* const* pages = nullptr;
  const int32_t* slots = nullptr;  // host [count], rising, slots[i] >= to + i; null: from, from + 1 ...
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;

  [[nodiscard]] int64_t slot(int64_t index) const { return slots == nullptr ? from + index : slots[index]; }
};

// The numbers that the workspace of the latent operations depends on.
struct LatentShape {
  int64_t stacked_width = 0;
  int64_t key_latent_width = 0;    // stored coordinates
  int64_t value_latent_width = 0;  // likewise
  int64_t sketch_columns = 0;  // 0: no correction
  int64_t tokens = 0;
  int64_t trellis_width = 0;  // of the side that has more coordinates in trellis groups
  int64_t run_tokens = 1;     // LatentLayout::run_tokens
};

// ------------------------------------------------------------------------------------------- calibration

// sum += column sums, products += rows^T rows (lower triangle, row-major), all in double precision. Host memory.
struct MomentsRequest {
  const float* rows = nullptr;  // [count][width]
  int64_t count = 0;
  int64_t width = 0;
  double* sum = nullptr;       // [width]
  double* products = nullptr;  // [width][width]
};

}  // namespace foldkv::backend
