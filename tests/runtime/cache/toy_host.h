#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cache/step.h"

// A host without a language model: queries, keys and values come from a seeded process whose layers share
// structure, so that a profile learned on one stretch compresses another.
namespace foldkv::test {

struct ToyShape {
  int64_t layers = 4;
  int64_t query_heads = 4;
  int64_t kv_heads = 2;
  int64_t head_size = 8;
  int64_t hidden = 0;  // above 0: weights are bound
  Pairing pairing = Pairing::kHalfSplit;
  int64_t window = 0;  // of odd layers
  double soft_cap = 0.0;
  bool norms = false;
  bool biases = false;
  double key_offset = 0.0;  // a constant in every key, like a large bias

  [[nodiscard]] int64_t query_width() const { return query_heads * head_size; }
  [[nodiscard]] int64_t key_width() const { return kv_heads * head_size; }
};

// Rows [tokens][width] of every layer.
struct ToyTokens {
  int64_t count = 0;
  std::vector<std::vector<float>> hidden, query, key, value;
};

class ToyHost {
 public:
  explicit ToyHost(const ToyShape& shape, uint32_t seed = 1);

  [[nodiscard]] const ToyShape& shape() const { return shape_; }
  [[nodiscard]] const std::shared_ptr<Model>& model() const { return model_; }
  [[nodiscard]] ToyTokens tokens(int64_t count, uint32_t seed) const;

 private:
  ToyShape shape_;
  std::vector<std::vector<float>> weights_;  // all matrices and vectors that the model borrows
  std::shared_ptr<Model> model_;
};

// A runtime on a backend of that name ("reference" or "cpu").
struct RuntimeChoice {
  std::string backend = "cpu";
  int32_t threads = 1;
  bool deterministic = false;
  int64_t budget = int64_t{1} << 30;
  RuntimeHooks hooks = {};
};
[[nodiscard]] std::shared_ptr<Runtime> open_runtime(const RuntimeChoice& choice);
[[nodiscard]] const std::vector<std::string>& backend_names();

struct ProfileChoice {
  int64_t layers_per_group = 2;
  int32_t bits = 4;
  int64_t latent_width = 0;  // 0: key width
  int32_t scale_group = 128;
  int32_t correction_rank = 0;
  bool uncentred = false;
  bool rotate = false;
  int64_t exact_layers = 0;  // the last ones, in no group
};
[[nodiscard]] std::shared_ptr<const Profile> calibrate(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                                       const ProfileChoice& choice, int64_t token_count = 400);

[[nodiscard]] std::shared_ptr<Sequence> make_sequence(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                                      const std::shared_ptr<const Profile>& profile,
                                                      const SequencePolicy& policy = {});

// Outputs of one step: per layer [rows][query width] or, projected, [rows][hidden].
using LayerOutputs = std::vector<std::vector<float>>;

// A piece of a toy's tokens for one sequence.
struct ToyFeed {
  std::shared_ptr<Sequence> sequence;
  const ToyTokens* tokens = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  bool continues = false;
  std::vector<int32_t> positions;
};

// One whole step over one or more sequences; fails the test on any error.
[[nodiscard]] LayerOutputs run_step(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                    const std::vector<ToyFeed>& feeds, const StepRules& rules = {});
// Likewise, for threads and for steps that may fail.
[[nodiscard]] StatusOr<LayerOutputs> try_step(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                              const std::vector<ToyFeed>& feeds, const StepRules& rules = {});
// The input of one layer for feeds' rows, gathered into rows; the vectors must outlive the views.
struct GatheredInput {
  std::vector<float> hidden, query, key, value, output, log_sum_exp;
  AttendInput views;
};
void gather_input(const ToyHost& host, const std::vector<ToyFeed>& feeds, int64_t layer, const StepRules& rules,
                  GatheredInput& gathered);

// A prompt in chunks of that many tokens (continues on all but the last); outputs of all rows, per layer.
[[nodiscard]] LayerOutputs feed_in_chunks(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                          const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens,
                                          int64_t first, int64_t count, int64_t chunk, const StepRules& rules = {});

// Of each KV head: the tokens before the rows in question that it has kept; empty: all heads all.
using KeptByHead = std::vector<std::vector<int32_t>>;

// Attention of one layer computed apart from the library, in double precision, over all tokens up to each query.
// Keys and values as given; positions are token numbers. Result [rows][query width] for rows [first, first + count).
[[nodiscard]] std::vector<double> oracle_attention(const ToyHost& host, int64_t layer, const std::vector<float>& query,
                                                   const std::vector<float>& key, const std::vector<float>& value,
                                                   int64_t first, int64_t count, const KeptByHead& kept = {});
// The causal attention weights of a prompt, likewise: [query heads][rows][tokens].
[[nodiscard]] std::vector<double> oracle_weights(const ToyHost& host, int64_t layer, const std::vector<float>& query,
                                                 const std::vector<float>& key, int64_t count);

[[nodiscard]] double largest_difference(const std::vector<float>& a, const std::vector<double>& b);
[[nodiscard]] double relative_error(const std::vector<float>& a, const std::vector<double>& b);

}  // namespace foldkv::test
