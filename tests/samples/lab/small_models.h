#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "samples/lab/byte_alphabet.h"
#include "samples/lab/model.h"
#include "samples/lab/tokenizer.h"
#include "tests/samples/lab/gguf_builder.h"
#include "tests/support/random.h"

namespace foldkv_lab::test {

inline ModelShape small_shape(const std::string& architecture) {
  ModelShape shape;
  shape.architecture = architecture;
  shape.layer_count = 3;
  shape.hidden_size = 48;
  shape.feed_forward_size = 80;
  shape.query_heads = 6;
  shape.kv_heads = 2;
  shape.head_size = 8;
  shape.vocabulary_size = 262;
  shape.context_length = 256;
  shape.norm_epsilon = 1e-5;
  shape.pairing = architecture == "llama" ? Pairing::kInterleaved : Pairing::kHalfSplit;
  shape.inverse_frequencies = standard_inverse_frequencies(10000.0, shape.head_size);
  return shape;
}

inline Matrix random_matrix(foldkv::test::Random& random, int64_t rows, int64_t columns, double deviation) {
  Matrix matrix(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    matrix.numbers.data()[i] = static_cast<float>(deviation * random.normal());
  }
  return matrix;
}

inline std::vector<float> random_gains(foldkv::test::Random& random, int64_t size) {
  std::vector<float> gains = random.normals<float>(size, 0.1);
  for (float& gain : gains) gain += 1.0f;
  return gains;
}

// Random weights. key_bias: deviation of the biases of keys (queries and values get a tenth); 0: no biases.
inline Model random_model(const ModelShape& shape, uint64_t seed, double key_bias) {
  foldkv::test::Random random(seed);
  Model model;
  model.shape = shape;
  model.embedding = random_matrix(random, shape.vocabulary_size, shape.hidden_size, 1.0);
  const double by_hidden = 1.0 / std::sqrt(static_cast<double>(shape.hidden_size));
  for (int64_t i = 0; i < shape.layer_count; ++i) {
    ModelLayer layer;
    layer.attention_norm = random_gains(random, shape.hidden_size);
    layer.query_key_value =
        random_matrix(random, shape.query_width() + 2 * shape.kv_width(), shape.hidden_size, by_hidden);
    if (key_bias > 0) {
      layer.query_key_value_bias = random.normals<float>(shape.query_width() + 2 * shape.kv_width(), key_bias / 10);
      for (int64_t j = 0; j < shape.kv_width(); ++j) {
        layer.query_key_value_bias[static_cast<size_t>(shape.query_width() + j)] *= 10.0f;
      }
    }
    layer.attention_output = random_matrix(random, shape.hidden_size, shape.query_width(), by_hidden);
    layer.feed_forward_norm = random_gains(random, shape.hidden_size);
    layer.gate_and_up = random_matrix(random, 2 * shape.feed_forward_size, shape.hidden_size, by_hidden);
    layer.down = random_matrix(random, shape.hidden_size, shape.feed_forward_size, by_hidden);
    model.layers.push_back(std::move(layer));
  }
  model.final_norm = random_gains(random, shape.hidden_size);
  return model;
}

// The shapes differ in pairing, biases, sharing of KV heads and rotated part of a head.
inline std::vector<Model> varied_models() {
  std::vector<Model> result;
  result.push_back(random_model(small_shape("llama"), 1, 0));
  result.push_back(random_model(small_shape("qwen2"), 2, 30));
  ModelShape shape = small_shape("qwen2");
  shape.kv_heads = 1;
  shape.head_size = 24;  // hidden size is not heads times head size, and no multiple of 16
  shape.inverse_frequencies = standard_inverse_frequencies(10000.0, 16);
  result.push_back(random_model(shape, 3, 30));
  shape = small_shape("llama");
  shape.kv_heads = 6;
  result.push_back(random_model(shape, 4, 0));
  return result;
}

// In the vocabulary of small_shape.
inline std::vector<Token> random_tokens(int64_t count, uint64_t seed) {
  foldkv::test::Random random(seed);
  std::vector<Token> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(random.between(0, 261)));
  return tokens;
}

inline std::vector<float> numbers_of(const Matrix& matrix, int64_t first_row, int64_t rows) {
  const float* start = matrix.row(first_row);
  return std::vector<float>(start, start + rows * matrix.columns);
}

// A byte-pair vocabulary: a special token, all bytes, and what the merges make.
inline void add_byte_pair_tokenizer(GgufBuilder* file) {
  std::vector<std::string> tokens = {"<|im_end|>"};
  std::vector<int32_t> kinds = {3};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(character_of_byte(static_cast<uint8_t>(byte)));
  const std::string blank = character_of_byte(' ');
  for (const std::string& text :
       {std::string("he"), std::string("ll"), std::string("hell"), blank + "w", blank + "wo"}) {
    tokens.push_back(text);
  }
  kinds.resize(tokens.size(), 1);
  file->add_text("tokenizer.ggml.model", "gpt2");
  file->add_text("tokenizer.ggml.pre", "smollm");
  file->add_texts("tokenizer.ggml.tokens", tokens);
  file->add_i32s("tokenizer.ggml.token_type", kinds);
  file->add_texts("tokenizer.ggml.merges", {"h e", "l l", "he ll", blank + " w", blank + "w o"});
  file->add_u32("tokenizer.ggml.eos_token_id", 0);
}

inline void add_metadata(GgufBuilder* file, const ModelShape& shape) {
  const std::string prefix = shape.architecture + ".";
  file->add_text("general.architecture", shape.architecture);
  file->add_u32(prefix + "block_count", static_cast<uint32_t>(shape.layer_count));
  file->add_u32(prefix + "context_length", static_cast<uint32_t>(shape.context_length));
  file->add_u32(prefix + "embedding_length", static_cast<uint32_t>(shape.hidden_size));
  file->add_u32(prefix + "feed_forward_length", static_cast<uint32_t>(shape.feed_forward_size));
  file->add_u32(prefix + "attention.head_count", static_cast<uint32_t>(shape.query_heads));
  file->add_u32(prefix + "attention.head_count_kv", static_cast<uint32_t>(shape.kv_heads));
  file->add_f32(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(shape.norm_epsilon));
  file->add_f32(prefix + "rope.freq_base", 10000.0f);
}

inline void add_layer(GgufBuilder* file, const ModelShape& shape, const ModelLayer& layer, const std::string& name) {
  const uint64_t hidden = static_cast<uint64_t>(shape.hidden_size);
  const auto add_rows = [&](const std::string& part, const Matrix& matrix, int64_t first, int64_t rows) {
    file->add_floats(name + part, {static_cast<uint64_t>(matrix.columns), static_cast<uint64_t>(rows)},
                     numbers_of(matrix, first, rows));
  };
  file->add_floats(name + "attn_norm.weight", {hidden}, layer.attention_norm);
  file->add_floats(name + "ffn_norm.weight", {hidden}, layer.feed_forward_norm);
  const int64_t queries = shape.query_width();
  const int64_t width = shape.kv_width();
  add_rows("attn_q.weight", layer.query_key_value, 0, queries);
  add_rows("attn_k.weight", layer.query_key_value, queries, width);
  add_rows("attn_v.weight", layer.query_key_value, queries + width, width);
  if (!layer.query_key_value_bias.empty()) {
    const auto start = layer.query_key_value_bias.begin();
    const auto add_bias = [&](const std::string& part, int64_t first, int64_t count) {
      file->add_floats(name + part, {static_cast<uint64_t>(count)},
                       std::vector<float>(start + first, start + first + count));
    };
    add_bias("attn_q.bias", 0, queries);
    add_bias("attn_k.bias", queries, width);
    add_bias("attn_v.bias", queries + width, width);
  }
  add_rows("attn_output.weight", layer.attention_output, 0, shape.hidden_size);
  add_rows("ffn_gate.weight", layer.gate_and_up, 0, shape.feed_forward_size);
  add_rows("ffn_up.weight", layer.gate_and_up, shape.feed_forward_size, shape.feed_forward_size);
  add_rows("ffn_down.weight", layer.down, 0, shape.hidden_size);
}

// The model with tied embeddings as a GGUF file in f32.
inline GgufBuilder gguf_of(const Model& model) {
  GgufBuilder file;
  add_metadata(&file, model.shape);
  add_byte_pair_tokenizer(&file);
  file.add_floats("token_embd.weight",
                  {static_cast<uint64_t>(model.shape.hidden_size), static_cast<uint64_t>(model.shape.vocabulary_size)},
                  numbers_of(model.embedding, 0, model.shape.vocabulary_size));
  for (size_t i = 0; i < model.layers.size(); ++i) {
    add_layer(&file, model.shape, model.layers[i], "blk." + std::to_string(i) + ".");
  }
  file.add_floats("output_norm.weight", {static_cast<uint64_t>(model.shape.hidden_size)}, model.final_norm);
  return file;
}

}  // namespace foldkv_lab::test
