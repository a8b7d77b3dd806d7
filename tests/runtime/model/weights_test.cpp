#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "doctest/doctest.h"
#include "runtime/model/model.h"
#include "tests/runtime/model/sample_model.h"

namespace foldkv {
namespace {

// The sample layer has query width 24, key width 8, hidden size 12.
TensorView view(int64_t rows, int64_t columns) {
  static const std::byte memory[4] = {};  // only the shape is looked at
  return {memory, NumberFormat::kBF16, rows, columns, columns};
}

LayerWeights sample_weights() {
  LayerWeights weights;
  weights.query = view(24, 12);
  weights.key = view(8, 12);
  weights.value = view(8, 12);
  weights.output = view(12, 24);
  weights.query_bias = view(1, 24);
  weights.key_bias = view(1, 8);
  weights.value_bias = view(1, 8);
  weights.output_bias = view(1, 12);
  return weights;
}

std::shared_ptr<Model> sample_model() { return Model::create(test::sample_description(2)).value(); }

std::string refused_argument(const std::function<void(LayerWeights&)>& change) {
  const std::shared_ptr<Model> model = sample_model();
  LayerWeights weights = sample_weights();
  change(weights);
  const Status status = model->bind_weights(0, weights);
  CHECK((status.ok() || status.code() == absl::StatusCode::kInvalidArgument));
  CHECK(model->weights(0).query.present() == status.ok());
  return argument_of(status);
}

TEST_CASE("a model has weights when every layer has") {
  const std::shared_ptr<Model> model = sample_model();
  CHECK(model->bind_weights(0, sample_weights()).ok());
  CHECK_FALSE(model->has_weights());
  LayerWeights without_output = sample_weights();
  without_output.output = without_output.output_bias = TensorView{};
  CHECK(model->bind_weights(1, without_output).ok());
  CHECK(model->has_weights());
  CHECK_FALSE(model->has_output_weights());
  CHECK(model->bind_weights(1, sample_weights()).ok());
  CHECK(model->has_output_weights());
  CHECK(model->weights(1).key.row_count == 8);
}

TEST_CASE("biases may be absent") {
  CHECK(refused_argument([](LayerWeights& weights) {
          weights.query_bias = weights.key_bias = weights.value_bias = weights.output_bias = TensorView{};
        }).empty());
}

TEST_CASE("what is needed must be there") {
  CHECK(refused_argument([](LayerWeights& weights) { weights.query = {}; }) == "weights.query");
  CHECK(refused_argument([](LayerWeights& weights) { weights.key = {}; }) == "weights.key");
  CHECK(refused_argument([](LayerWeights& weights) { weights.value = {}; }) == "weights.value");
  CHECK(refused_argument([](LayerWeights& weights) { weights.output = {}; }) == "weights.output_bias");
}

TEST_CASE("shapes must be those of the layer") {
  CHECK(refused_argument([](LayerWeights& weights) { weights.query = view(12, 24); }) == "weights.query");
  CHECK(refused_argument([](LayerWeights& weights) { weights.key = view(24, 12); }) == "weights.key");
  CHECK(refused_argument([](LayerWeights& weights) { weights.value = view(8, 11); }) == "weights.value");
  CHECK(refused_argument([](LayerWeights& weights) { weights.output = view(24, 12); }) == "weights.output");
  CHECK(refused_argument([](LayerWeights& weights) { weights.query_bias = view(1, 8); }) == "weights.query_bias");
  CHECK(refused_argument([](LayerWeights& weights) { weights.key_bias = view(8, 1); }) == "weights.key_bias");
  CHECK(refused_argument([](LayerWeights& weights) { weights.value_bias = view(1, 9); }) == "weights.value_bias");
  CHECK(refused_argument([](LayerWeights& weights) { weights.output_bias = view(1, 24); }) == "weights.output_bias");
}

TEST_CASE("formats must be known and rows must not overlap") {
  CHECK(refused_argument([](LayerWeights& weights) { weights.key.format = static_cast<NumberFormat>(0); }) ==
        "weights.key");
  CHECK(refused_argument([](LayerWeights& weights) { weights.key_bias.format = static_cast<NumberFormat>(4); }) ==
        "weights.key_bias");
  CHECK(refused_argument([](LayerWeights& weights) { weights.output.row_stride = 23; }) == "weights.output");
  CHECK(refused_argument([](LayerWeights& weights) { weights.output.row_stride = 64; }).empty());
}

TEST_CASE("weights need a layer and a hidden size") {
  const std::shared_ptr<Model> model = sample_model();
  CHECK(argument_of(model->bind_weights(-1, sample_weights())) == "layer");
  CHECK(argument_of(model->bind_weights(2, sample_weights())) == "layer");
  ModelDescription description = test::sample_description(1);
  description.hidden_size = 0;
  const Status status = Model::create(description).value()->bind_weights(0, sample_weights());
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("bound weights do not change once a sequence has seen them") {
  const std::shared_ptr<Model> model = sample_model();
  CHECK(model->bind_weights(0, sample_weights()).ok());
  model->freeze();
  const Status status = model->bind_weights(1, sample_weights());
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_FALSE(model->weights(1).query.present());
}

}  // namespace
}  // namespace foldkv
