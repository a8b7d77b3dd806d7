#include "runtime/calibration/layer_groups.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/model/model.h"
#include "tests/runtime/calibration/sample_text.h"

namespace foldkv {
namespace {

using Groups = std::vector<LayerGroup>;

// Layers of key width 4, those listed with a window.
std::shared_ptr<Model> model_of(int64_t layer_count, const std::vector<size_t>& windowed = {}) {
  ModelDescription description = test::plain_description(layer_count, 2, 2);
  for (size_t layer : windowed) description.layers[layer].window = 16;
  return Model::create(description).value();
}

Groups groups_of(const Model& model, int32_t layers_per_group) {
  return make_layer_groups(model, layers_per_group).value();
}

TEST_CASE("neighbours go together, the last group may be shorter") {
  const std::shared_ptr<Model> model = model_of(10);
  CHECK(groups_of(*model, 4) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(groups_of(*model, 10) == Groups{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  CHECK(groups_of(*model, 4096).size() == 1);
  CHECK(groups_of(*model, 1).size() == 10);
}

TEST_CASE("layers with a window stay exact and do not part the others") {
  CHECK(groups_of(*model_of(7, {1, 2, 4}), 2) == Groups{{0, 3}, {5, 6}});
  CHECK(groups_of(*model_of(3, {0, 2}), 4) == Groups{{1}});
}

TEST_CASE("a group does not mix kinds") {
  ModelDescription description = test::plain_description(5, 2, 2);
  description.layers[2].kv_heads = 1;
  CHECK(groups_of(*Model::create(description).value(), 4) == Groups{{0, 1}, {2}, {3, 4}});
}

TEST_CASE("numbers of layers out of range are refused") {
  const std::shared_ptr<Model> model = model_of(4);
  for (int32_t bad : {0, -1, 4097}) CHECK(argument_of(make_layer_groups(*model, bad).status()) == "layers_per_group");
  CHECK(argument_of(make_layer_groups(*model_of(2, {0, 1}), 4).status()) == "model");
  ModelDescription wide = test::plain_description(4, 1024, 512);
  CHECK(argument_of(make_layer_groups(*Model::create(wide).value(), 4).status()) == "layers_per_group");
  CHECK(groups_of(*Model::create(wide).value(), 2) == Groups{{0, 1}, {2, 3}});
}

TEST_CASE("groups of the host's choice are kept, in rising order of their first layer") {
  const std::shared_ptr<Model> model = model_of(6);
  CHECK(check_layer_groups(*model, {{1, 5}, {0, 2}}).value() == Groups{{0, 2}, {1, 5}});
  CHECK(check_layer_groups(*model_of(3, {0, 2}), {{0, 2}, {1}}).value() == Groups{{0, 2}, {1}});
}

TEST_CASE("groups that mean nothing are refused by name") {
  const std::shared_ptr<Model> model = model_of(6, {4});
  const auto refused = [&](Groups groups) {
    const Status status = check_layer_groups(*model, std::move(groups)).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return argument_of(status);
  };
  CHECK(refused({}) == "groups");
  CHECK(refused({{0}, {}}) == "groups[1].layers");
  CHECK(refused({{0, 6}}) == "groups[0].layers[1]");
  CHECK(refused({{-1, 0}}) == "groups[0].layers[0]");
  CHECK(refused({{1, 0}}) == "groups[0].layers[1]");
  CHECK(refused({{1, 1}}) == "groups[0].layers[1]");
  CHECK(refused({{0, 1}, {2, 3}, {1}}) == "groups[2].layers[0]");
  CHECK(refused({{3, 4}}) == "groups[0].layers[1]");
  const Status status = check_layer_groups(*model, {{3, 4}}).status();
  CHECK(std::string(status.message()).find("layers 3 and 4") != std::string::npos);
}

}  // namespace
}  // namespace foldkv
