#include "samples/lab/model_from_gguf.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "samples/lab/dequantize.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct MatrixPart {
  std::string name;
  int64_t rows;
};

// Takes tensors out of a file and remembers which were taken.
class TensorTaker {
 public:
  explicit TensorTaker(const GgufFile& file) : file_(file) {}

  [[nodiscard]] bool has(absl::string_view name) const { return file_.find_tensor(name) != nullptr; }

  // Matrices of equal width on top of each other. All shapes are compared before memory is asked for: what is
  // allocated is bounded by the bytes of the file.
  [[nodiscard]] absl::StatusOr<Matrix> take_stack(const std::vector<MatrixPart>& parts, int64_t columns) {
    int64_t total = 0;
    for (const MatrixPart& part : parts) {
      LAB_RETURN_IF_ERROR(check_shape_of(part.name, {columns, part.rows}));
      total += part.rows;
    }
    Matrix matrix(total, columns);
    int64_t row = 0;
    for (const MatrixPart& part : parts) {
      LAB_RETURN_IF_ERROR(take(part.name, {matrix.row(row), static_cast<size_t>(part.rows * columns)}));
      row += part.rows;
    }
    return matrix;
  }

  [[nodiscard]] absl::StatusOr<std::vector<float>> take_vector(const std::string& name, int64_t size) {
    LAB_RETURN_IF_ERROR(check_shape_of(name, {size}));
    std::vector<float> numbers(static_cast<size_t>(size));
    LAB_RETURN_IF_ERROR(take(name, numbers));
    return numbers;
  }

  [[nodiscard]] absl::Status check_all_taken() const {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (!taken_.contains(tensor.name)) {
        return absl::UnimplementedError(absl::StrCat("tensor ", tensor.name, " has no place in this architecture"));
      }
    }
    return absl::OkStatus();
  }

 private:
  // `expected` has the fastest dimension first, as in the file.
  [[nodiscard]] absl::Status check_shape_of(const std::string& name, const std::vector<int64_t>& expected) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return absl::DataLossError(absl::StrCat("tensor ", name, " is missing"));
    if (std::equal(tensor->shape.begin(), tensor->shape.end(), expected.begin(), expected.end(),
                   [](uint64_t got, int64_t wanted) { return got == static_cast<uint64_t>(wanted); })) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("tensor ", name, " is [", absl::StrJoin(tensor->shape, ", "),
                                            "], the metadata ask for [", absl::StrJoin(expected, ", "), "]"));
  }

  [[nodiscard]] absl::Status take(const std::string& name, std::span<float> target) {
    const GgufTensor* tensor = file_.find_tensor(name);
    taken_.insert(tensor->name);
    return dequantize(tensor->type, tensor->bytes, target);
  }

  const GgufFile& file_;
  absl::flat_hash_set<absl::string_view> taken_;
};

absl::StatusOr<int64_t> read_size(const GgufFile& file, const std::string& key) {
  LAB_ASSIGN_OR_RETURN(const uint64_t value, file.unsigned_number(key));
  if (value > (uint64_t{1} << 40)) return absl::DataLossError(absl::StrCat(key, " is ", value, ", far too large"));
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> read_size_or(const GgufFile& file, const std::string& key, int64_t missing) {
  if (!file.has(key)) return missing;
  return read_size(file, key);
}

absl::StatusOr<int64_t> read_head_size(const GgufFile& file, const std::string& prefix, const ModelShape& shape) {
  if (shape.query_heads < 1) return absl::DataLossError(absl::StrCat(prefix, "attention.head_count is 0"));
  const int64_t even_share = shape.hidden_size / shape.query_heads;
  LAB_ASSIGN_OR_RETURN(const int64_t key_size, read_size_or(file, prefix + "attention.key_length", even_share));
  LAB_ASSIGN_OR_RETURN(const int64_t value_size, read_size_or(file, prefix + "attention.value_length", key_size));
  if (key_size != value_size) {
    return absl::UnimplementedError(absl::StrCat("heads of ", key_size, " for keys and ", value_size,
                                                 " for values; only equal sizes are supported"));
  }
  return key_size;
}

// Base, rotated part of the head and linear scaling; other kinds of scaling are refused, not ignored.
absl::StatusOr<std::vector<double>> read_frequencies(const GgufFile& file, const std::string& prefix, int64_t head_size,
                                                     TensorTaker& tensors) {
  LAB_ASSIGN_OR_RETURN(const double base, file.real_number_or(prefix + "rope.freq_base", 10000.0));
  if (!std::isfinite(base) || base < 1) {
    return absl::DataLossError(absl::StrCat(prefix, "rope.freq_base is ", base, ", expected at least 1"));
  }
  LAB_ASSIGN_OR_RETURN(const int64_t rotated, read_size_or(file, prefix + "rope.dimension_count", head_size));
  if (head_size < 1 || head_size > 512 || rotated < 2 || rotated > head_size || rotated % 2 != 0) {
    return absl::DataLossError(absl::StrCat("rotation of ", rotated, " of ", head_size,
                                            " numbers of a head; expected an even part of at most 512"));
  }
  LAB_ASSIGN_OR_RETURN(const absl::string_view scaling, file.text_or(prefix + "rope.scaling.type", "none"));
  double factor = 1;
  if (scaling == "linear") {
    LAB_ASSIGN_OR_RETURN(factor, file.real_number(prefix + "rope.scaling.factor"));
    if (!std::isfinite(factor) || factor <= 0) return absl::DataLossError("rope.scaling.factor is not positive");
  } else if (scaling != "none") {
    return absl::UnimplementedError(absl::StrCat("rotation scaling \"", scaling, "\", expected none or linear"));
  }
  std::vector<double> frequencies = standard_inverse_frequencies(base, rotated);
  for (double& frequency : frequencies) frequency /= factor;
  if (!tensors.has("rope_freqs.weight")) return frequencies;
  LAB_ASSIGN_OR_RETURN(const std::vector<float> divisors, tensors.take_vector("rope_freqs.weight", rotated / 2));
  for (size_t pair = 0; pair < frequencies.size(); ++pair) frequencies[pair] /= static_cast<double>(divisors[pair]);
  return frequencies;
}

absl::StatusOr<ModelShape> read_shape(const GgufFile& file, TensorTaker& tensors) {
  ModelShape shape;
  LAB_ASSIGN_OR_RETURN(const absl::string_view architecture, file.text("general.architecture"));
  if (architecture != "llama" && architecture != "qwen2") {
    return absl::UnimplementedError(absl::StrCat("architecture \"", architecture, "\", expected llama or qwen2"));
  }
  shape.architecture = std::string(architecture);
  shape.pairing = architecture == "llama" ? Pairing::kInterleaved : Pairing::kHalfSplit;
  const std::string prefix = shape.architecture + ".";
  LAB_ASSIGN_OR_RETURN(shape.layer_count, read_size(file, prefix + "block_count"));
  LAB_ASSIGN_OR_RETURN(shape.hidden_size, read_size(file, prefix + "embedding_length"));
  LAB_ASSIGN_OR_RETURN(shape.feed_forward_size, read_size(file, prefix + "feed_forward_length"));
  LAB_ASSIGN_OR_RETURN(shape.query_heads, read_size(file, prefix + "attention.head_count"));
  LAB_ASSIGN_OR_RETURN(shape.kv_heads, read_size_or(file, prefix + "attention.head_count_kv", shape.query_heads));
  LAB_ASSIGN_OR_RETURN(shape.context_length, read_size(file, prefix + "context_length"));
  LAB_ASSIGN_OR_RETURN(shape.norm_epsilon, file.real_number(prefix + "attention.layer_norm_rms_epsilon"));
  LAB_ASSIGN_OR_RETURN(const int64_t experts, read_size_or(file, prefix + "expert_count", 0));
  if (experts != 0) return absl::UnimplementedError("models with experts are not supported");
  LAB_ASSIGN_OR_RETURN(shape.head_size, read_head_size(file, prefix, shape));
  LAB_ASSIGN_OR_RETURN(shape.inverse_frequencies, read_frequencies(file, prefix, shape.head_size, tensors));
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[1] > (1u << 24)) {
    return absl::DataLossError("tensor token_embd.weight is missing or is no matrix of a known size");
  }
  shape.vocabulary_size = static_cast<int64_t>(embedding->shape[1]);
  LAB_RETURN_IF_ERROR(check_shape(shape));
  return shape;
}

// Biases of queries, keys and values one after the other, as the rows of the stacked matrix; empty when there are none.
absl::StatusOr<std::vector<float>> read_biases(TensorTaker& tensors, const std::string& name, const ModelShape& shape) {
  std::vector<float> biases;
  if (!tensors.has(name + "attn_q.bias")) return biases;
  const MatrixPart parts[] = {{name + "attn_q.bias", shape.query_width()},
                              {name + "attn_k.bias", shape.kv_width()},
                              {name + "attn_v.bias", shape.kv_width()}};
  for (const MatrixPart& part : parts) {
    LAB_ASSIGN_OR_RETURN(const std::vector<float> bias, tensors.take_vector(part.name, part.rows));
    biases.insert(biases.end(), bias.begin(), bias.end());
  }
  return biases;
}

absl::StatusOr<ModelLayer> read_layer(TensorTaker& tensors, const ModelShape& shape, int64_t layer) {
  const std::string name = absl::StrCat("blk.", layer, ".");
  const int64_t hidden = shape.hidden_size;
  const int64_t queries = shape.query_width();
  const int64_t width = shape.kv_width();
  const int64_t feed_forward = shape.feed_forward_size;
  ModelLayer result;
  LAB_ASSIGN_OR_RETURN(result.attention_norm, tensors.take_vector(name + "attn_norm.weight", hidden));
  LAB_ASSIGN_OR_RETURN(result.query_key_value, tensors.take_stack({{name + "attn_q.weight", queries},
                                                                   {name + "attn_k.weight", width},
                                                                   {name + "attn_v.weight", width}},
                                                                  hidden));
  LAB_ASSIGN_OR_RETURN(result.query_key_value_bias, read_biases(tensors, name, shape));
  LAB_ASSIGN_OR_RETURN(result.attention_output, tensors.take_stack({{name + "attn_output.weight", hidden}}, queries));
  LAB_ASSIGN_OR_RETURN(result.feed_forward_norm, tensors.take_vector(name + "ffn_norm.weight", hidden));
  LAB_ASSIGN_OR_RETURN(
      result.gate_and_up,
      tensors.take_stack({{name + "ffn_gate.weight", feed_forward}, {name + "ffn_up.weight", feed_forward}}, hidden));
  LAB_ASSIGN_OR_RETURN(result.down, tensors.take_stack({{name + "ffn_down.weight", hidden}}, feed_forward));
  return result;
}

}  // namespace

absl::StatusOr<Model> model_from_gguf(const GgufFile& file) {
  TensorTaker tensors(file);
  Model model;
  LAB_ASSIGN_OR_RETURN(model.shape, read_shape(file, tensors));
  const ModelShape& shape = model.shape;
  LAB_ASSIGN_OR_RETURN(model.embedding,
                       tensors.take_stack({{"token_embd.weight", shape.vocabulary_size}}, shape.hidden_size));
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    LAB_ASSIGN_OR_RETURN(ModelLayer weights, read_layer(tensors, shape, layer));
    model.layers.push_back(std::move(weights));
  }
  LAB_ASSIGN_OR_RETURN(model.final_norm, tensors.take_vector("output_norm.weight", shape.hidden_size));
  if (tensors.has("output.weight")) {
    LAB_ASSIGN_OR_RETURN(model.own_classifier,
                         tensors.take_stack({{"output.weight", shape.vocabulary_size}}, shape.hidden_size));
  }
  LAB_RETURN_IF_ERROR(tensors.check_all_taken());
  return model;
}

}  // namespace foldkv_lab
