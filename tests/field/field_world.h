#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "foldkv/foldkv.h"
#include "tests/field/field_tokens.h"
#include "tests/support/handles.h"
#include "tests/support/plain_attention.h"

// A host behind the C functions, for field tests: a runtime, a model of any layers, profiles, sequences, steps.
namespace foldkv::test::field {

struct WorldChoice {
  const char* backend = "cpu";
  int32_t threads = 1;  // many small steps on a busy machine: handing them over would be most of the time
  uint64_t budget = 256u << 20;
  const char* instruction_set = nullptr;
};

class World {
 public:
  explicit World(std::vector<LayerShape> layers, const WorldChoice& choice = {});

  [[nodiscard]] foldkv_runtime* runtime() const { return runtime_.get(); }
  [[nodiscard]] foldkv_model* model() const { return model_.get(); }
  [[nodiscard]] const std::vector<LayerShape>& layers() const { return layers_; }
  [[nodiscard]] foldkv_runtime_stats stats() const;

 private:
  std::vector<LayerShape> layers_;
  Owned<foldkv_runtime> runtime_;
  Owned<foldkv_model> model_;
};

[[nodiscard]] Owned<foldkv_runtime> open_runtime(const WorldChoice& choice);
// NULL when it is refused.
[[nodiscard]] Owned<foldkv_model> make_model(const std::vector<LayerShape>& layers, foldkv_error* error = nullptr);

// How latents are stored: 16 bits are f16, without scales.
struct ProfileChoice {
  int32_t layers_per_group = 2;
  int32_t key_bits = 4;
  int32_t value_bits = 4;
  int32_t latent_width = 0;  // 0: the key width of a layer
  int32_t scale_group = 128;
  int32_t correction_rank = 0;
  bool uncentred = false;
  bool rotate = false;
  std::vector<std::vector<int32_t>> groups;  // empty: neighbours
};
[[nodiscard]] Owned<foldkv_profile> calibrate(const World& world, const Tokens& text, const ProfileChoice& choice = {});
// As in `choice`, or NULL and the error.
[[nodiscard]] Owned<foldkv_profile> try_calibrate(const World& world, const Tokens& text, const ProfileChoice& choice,
                                                  foldkv_error* error);

// A published codec; bits 0: its own.
[[nodiscard]] Owned<foldkv_profile> codec_profile(const World& world, int32_t codec, int32_t bits = 0);

// Exact rows in f32, so that an oracle sees the numbers that the cache holds.
[[nodiscard]] foldkv_sequence_options f32_options();
[[nodiscard]] Owned<foldkv_sequence> make_sequence(const World& world, const foldkv_profile* profile,
                                                   const foldkv_sequence_options& options = f32_options());
[[nodiscard]] foldkv_eviction policy_of(const char* name);
[[nodiscard]] foldkv_sequence_stats stats_of(const foldkv_sequence* sequence);

// A piece of a text for one sequence.
struct Piece {
  foldkv_sequence* sequence = nullptr;
  const Tokens* tokens = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  bool continues = false;
  std::vector<int64_t> positions;  // empty: the next ones
};

// Of every layer: rows [rows][query width] and [rows][query heads].
struct Outputs {
  std::vector<std::vector<float>> context;
  std::vector<std::vector<float>> log_sum_exp;

  bool operator==(const Outputs&) const = default;
};

// One whole step; fails the test on any error.
Outputs feed(const World& world, const std::vector<Piece>& pieces);
// The same with queries in another format, which must hold them exactly.
Outputs feed_queries_as(int32_t dtype, const World& world, const std::vector<Piece>& pieces);
// The same; outputs are those of the layers before the error.
foldkv_status try_feed(const World& world, const std::vector<Piece>& pieces, Outputs* outputs, foldkv_error* error);
// Tokens [first, first + count) of a text, `chunk` at a time, as one prompt.
Outputs feed_in_chunks(const World& world, foldkv_sequence* sequence, const Tokens& tokens, int64_t first,
                       int64_t count, int64_t chunk);
// The same, as generated tokens.
Outputs generate(const World& world, foldkv_sequence* sequence, const Tokens& tokens, int64_t first, int64_t count);

[[nodiscard]] std::vector<int64_t> kept_positions(const foldkv_sequence* sequence, int32_t layer, int32_t kv_head);
// What one KV head of a sequence holds, keys before rotation.
[[nodiscard]] HeadTokens held_tokens(const World& world, const foldkv_sequence* sequence, int32_t layer,
                                     int32_t kv_head);
// Everything that a sequence holds, in one row: two sequences that are equal here hold the same codes.
[[nodiscard]] std::vector<float> held_numbers(const World& world, const foldkv_sequence* sequence);

// Feeds a piece to a sequence whose exact rows are f32. The largest error of its outputs against plain attention over
// what the sequence held before it and the piece's own rows, at the positions that the sequence says.
[[nodiscard]] double error_of_feeding(const World& world, const Piece& piece);

// Outputs of a whole text from its beginning: plain attention over its true rows.
[[nodiscard]] std::vector<double> true_context(const LayerShape& layer, const Tokens& tokens, size_t index,
                                               int64_t first, int64_t count);

}  // namespace foldkv::test::field
