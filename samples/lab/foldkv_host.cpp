#include "samples/lab/foldkv_host.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

void run_on_lab_threads(void* context, int32_t count, void (*task)(void* task_context, int32_t index),
                        void* task_context) {
  static_cast<ThreadPool*>(context)->run(count, task, task_context);
}

absl::StatusOr<foldkv::Runtime> create_runtime(const FoldkvHostOptions& options, ThreadPool& threads) {
  foldkv_runtime_options runtime_options = foldkv::init<foldkv_runtime_options>();
  runtime_options.backend = options.backend.empty() ? nullptr : options.backend.c_str();
  runtime_options.instruction_set = options.instruction_set.empty() ? nullptr : options.instruction_set.c_str();
  runtime_options.budget_bytes = options.budget_bytes;
  runtime_options.deterministic = options.deterministic ? 1 : 0;
  runtime_options.threads = threads.threads();
  runtime_options.parallel_for = run_on_lab_threads;
  runtime_options.parallel_for_context = &threads;
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Runtime runtime, "creating a runtime", foldkv::Runtime::create(runtime_options));
  return runtime;
}

absl::StatusOr<foldkv::Model> describe_model(const ModelShape& shape, const std::string& name) {
  foldkv_rotation rotation = foldkv::init<foldkv_rotation>();
  rotation.pairing = shape.pairing == Pairing::kInterleaved ? FOLDKV_PAIRING_INTERLEAVED : FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = shape.inverse_frequencies.data();
  rotation.frequency_count = static_cast<int32_t>(shape.inverse_frequencies.size());
  foldkv_layer layer = foldkv::init<foldkv_layer>();
  layer.query_heads = static_cast<int32_t>(shape.query_heads);
  layer.kv_heads = static_cast<int32_t>(shape.kv_heads);
  layer.head_size = static_cast<int32_t>(shape.head_size);
  layer.rotation = shape.inverse_frequencies.empty() ? nullptr : &rotation;
  const std::vector<foldkv_layer> layers(static_cast<size_t>(shape.layer_count), layer);
  foldkv_model_options options = foldkv::init<foldkv_model_options>();
  options.layer_count = static_cast<int32_t>(shape.layer_count);
  options.layers = layers.data();
  options.hidden_size = shape.hidden_size;
  options.name = name.empty() ? nullptr : name.c_str();
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Model model, "describing the model", foldkv::Model::create(options));
  return model;
}

// Rows [first, first + count) of a matrix, and the same part of a bias.
foldkv_tensor weight_tensor(const Matrix& matrix, int64_t first, int64_t count) {
  return foldkv::tensor(matrix.row(first), {count, matrix.columns});
}

foldkv_tensor bias_tensor(const std::vector<float>& bias, int64_t first, int64_t count) {
  return bias.empty() ? foldkv_tensor{} : foldkv::tensor(bias.data() + first, {count});
}

absl::Status bind_layer(const Model& model, int64_t index, foldkv::Model& foldkv_model) {
  const ModelLayer& layer = model.layers[static_cast<size_t>(index)];
  const int64_t queries = model.shape.query_width();
  const int64_t width = model.shape.kv_width();
  foldkv_layer_weights weights = foldkv::init<foldkv_layer_weights>();
  weights.query = weight_tensor(layer.query_key_value, 0, queries);
  weights.key = weight_tensor(layer.query_key_value, queries, width);
  weights.value = weight_tensor(layer.query_key_value, queries + width, width);
  weights.output = weight_tensor(layer.attention_output, 0, model.shape.hidden_size);
  weights.query_bias = bias_tensor(layer.query_key_value_bias, 0, queries);
  weights.key_bias = bias_tensor(layer.query_key_value_bias, queries, width);
  weights.value_bias = bias_tensor(layer.query_key_value_bias, queries + width, width);
  LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("binding the weights of layer ", index),
                             foldkv_model.bind_weights(static_cast<int32_t>(index), weights));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FoldkvHost>> FoldkvHost::create(const Model& model, const std::string& name,
                                                               const FoldkvHostOptions& options, ThreadPool& threads) {
  LAB_ASSIGN_OR_RETURN(foldkv::Runtime runtime, create_runtime(options, threads));
  LAB_ASSIGN_OR_RETURN(foldkv::Model foldkv_model, describe_model(model.shape, name));
  for (int64_t layer = 0; layer < model.shape.layer_count; ++layer) {
    LAB_RETURN_IF_ERROR(bind_layer(model, layer, foldkv_model));
  }
  return absl::WrapUnique(new FoldkvHost(model, threads, std::move(runtime), std::move(foldkv_model)));
}

}  // namespace foldkv_lab
