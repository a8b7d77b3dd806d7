#include "samples/lab/model_from_gguf.h"

#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "tests/samples/lab/hostile.h"
#include "tests/samples/lab/small_models.h"

namespace foldkv_lab::test {
namespace {

absl::StatusOr<Model> load(GgufBuilder& builder) {
  const std::vector<std::byte> bytes = builder.build();
  LAB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::parse(bytes));
  return model_from_gguf(file);
}

std::string error_of(GgufBuilder builder) {
  const auto model = load(builder);
  return model.ok() ? "" : std::string(model.status().message());
}

bool equal(const Matrix& a, const Matrix& b) {
  return a.rows == b.rows && a.columns == b.columns && numbers_of(a, 0, a.rows) == numbers_of(b, 0, b.rows);
}

TEST_CASE("a model comes out of its file as it went in") {
  for (const std::string architecture : {"llama", "qwen2"}) {
    const Model model = random_model(small_shape(architecture), 1, architecture == "qwen2" ? 10 : 0);
    GgufBuilder file = gguf_of(model);
    const auto loaded = load(file);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    CHECK(loaded->shape.architecture == architecture);
    CHECK(loaded->shape.pairing == model.shape.pairing);
    CHECK(loaded->shape.head_size == model.shape.head_size);
    CHECK(loaded->shape.inverse_frequencies == model.shape.inverse_frequencies);
    CHECK(equal(loaded->embedding, model.embedding));
    CHECK(loaded->own_classifier.rows == 0);
    for (size_t i = 0; i < model.layers.size(); ++i) {
      CHECK(equal(loaded->layers[i].query_key_value, model.layers[i].query_key_value));
      CHECK(loaded->layers[i].query_key_value_bias == model.layers[i].query_key_value_bias);
      CHECK(equal(loaded->layers[i].attention_output, model.layers[i].attention_output));
      CHECK(equal(loaded->layers[i].gate_and_up, model.layers[i].gate_and_up));
      CHECK(equal(loaded->layers[i].down, model.layers[i].down));
      CHECK(loaded->layers[i].attention_norm == model.layers[i].attention_norm);
      CHECK(loaded->layers[i].feed_forward_norm == model.layers[i].feed_forward_norm);
    }
    CHECK(loaded->final_norm == model.final_norm);
  }
}

TEST_CASE("own classifier, divided frequencies, linear scaling") {
  const Model model = random_model(small_shape("llama"), 2, 0);
  GgufBuilder file = gguf_of(model);
  file.add_floats("output.weight", {48, 262}, std::vector<float>(48 * 262, 2.0f));
  file.add_floats("rope_freqs.weight", {4}, {1, 2, 4, 8});
  file.add_text("llama.rope.scaling.type", "linear");
  file.add_f32("llama.rope.scaling.factor", 2.0f);
  const auto loaded = load(file);
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  CHECK(loaded->classifier().row(3)[1] == 2.0f);
  for (size_t i = 0; i < 4; ++i) {
    const double divisor = 2.0 * std::pow(2.0, static_cast<double>(i));
    CHECK(loaded->shape.inverse_frequencies[i] ==
          doctest::Approx(model.shape.inverse_frequencies[i] / divisor).epsilon(1e-12));
  }
}

TEST_CASE("metadata and tensors that do not agree") {
  const Model model = random_model(small_shape("llama"), 3, 0);
  GgufBuilder file = gguf_of(model);
  SUBCASE("a tensor that has no place") {
    file.add_floats("blk.0.attn_sinks.weight", {1}, {1});
    CHECK(error_of(file).find("attn_sinks.weight has no place") != std::string::npos);
  }
  SUBCASE("a bias for queries alone") {
    file.add_floats("blk.0.attn_q.bias", {48}, std::vector<float>(48));
    CHECK(error_of(file).find("attn_k.bias is missing") != std::string::npos);
  }
  SUBCASE("a scaling that is not known") {
    file.add_text("llama.rope.scaling.type", "yarn");
    CHECK(error_of(file).find("\"yarn\"") != std::string::npos);
  }
  SUBCASE("a rotation larger than the head") {
    file.add_u32("llama.rope.dimension_count", 10);
    CHECK(error_of(file).find("rotation of 10 of 8") != std::string::npos);
  }
  SUBCASE("heads of different size") {
    file.add_u32("llama.attention.value_length", 16);
    CHECK(error_of(file).find("heads of 8 for keys and 16") != std::string::npos);
  }
  SUBCASE("experts") {
    file.add_u32("llama.expert_count", 4);
    CHECK(error_of(file).find("experts") != std::string::npos);
  }
}

TEST_CASE("sizes far beyond the file ask for no memory") {
  const Model model = random_model(small_shape("llama"), 4, 0);
  ModelShape shape = model.shape;
  const auto file_with = [&](const ModelShape& claimed) {
    GgufBuilder file;
    add_metadata(&file, claimed);
    add_byte_pair_tokenizer(&file);
    file.add_floats("token_embd.weight", {48, 262}, numbers_of(model.embedding, 0, 262));
    add_layer(&file, model.shape, model.layers[0], "blk.0.");
    return error_of(file);
  };
  shape.feed_forward_size = 1 << 24;
  CHECK(file_with(shape).find("ffn_gate.weight is [48, 80], the metadata ask for [48, 16777216]") != std::string::npos);
  shape = model.shape;
  shape.hidden_size = 1 << 20;
  shape.query_heads = 4096;
  CHECK(file_with(shape).find("token_embd.weight is [48, 262]") != std::string::npos);
  shape = model.shape;
  shape.layer_count = 4096;
  CHECK(file_with(shape).find("blk.1.attn_norm.weight is missing") != std::string::npos);
  shape.layer_count = 4000000000;
  CHECK(file_with(shape).find("layer count is 4000000000") != std::string::npos);
}

TEST_CASE("every flipped byte of metadata and names gives an error or a model") {
  ModelShape shape = small_shape("qwen2");
  shape.layer_count = 1;
  GgufBuilder builder = gguf_of(random_model(shape, 5, 10));
  const std::vector<std::byte> file = builder.build();
  // The weights at the end are numbers like any other; the walk covers all bytes before them.
  const auto parsed = GgufFile::parse(file);
  REQUIRE(parsed.ok());
  const size_t end = static_cast<size_t>(parsed->tensors()[0].bytes.data() - file.data());
  int models = 0;
  const std::byte patterns[] = {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}};
  for_each_flip(file, end, patterns, [&](std::span<const std::byte> bytes) {
    const auto changed = GgufFile::parse(bytes);
    if (!changed.ok()) return;
    const auto tokenizer = tokenizer_from_gguf(*changed);
    if (tokenizer.ok()) {
      const auto tokens = (*tokenizer)->encode("hello world 12 <|im_end|>");
      if (tokens.ok()) CHECK((*tokenizer)->decode(*tokens).size() < 1000);
    }
    if (model_from_gguf(*changed).ok()) ++models;
  });
  CHECK(models > 0);
}

}  // namespace
}  // namespace foldkv_lab::test
