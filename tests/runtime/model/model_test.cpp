#include "runtime/model/model.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "doctest/doctest.h"
#include "tests/runtime/model/sample_model.h"

namespace foldkv {
namespace {

constexpr uint64_t kSampleFingerprint = 0x738546bf00a01341;  // of three sample layers
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNanF32 = std::numeric_limits<float>::quiet_NaN();

using LayerChange = std::function<void(LayerRules&)>;

LayerRules changed(const LayerChange& change) {
  LayerRules layer = test::sample_layer();
  change(layer);
  return layer;
}

uint64_t fingerprint_with(const LayerChange& change) {
  ModelDescription description = test::sample_description(3);
  change(description.layers[1]);
  return Model::create(description).value()->fingerprint();
}

// The error of a model whose layer 3 was changed.
Status error_with(const LayerChange& change) {
  ModelDescription description = test::sample_description(5);
  change(description.layers[3]);
  return Model::create(description).status();
}

void check_refused(const std::string& argument, const LayerChange& change) {
  CAPTURE(argument);
  const Status status = error_with(change);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(argument_of(status) == "layers[3]." + argument);
  const std::string message(status.message());
  CHECK(message.find("got ") != std::string::npos);
  CHECK(message.find("expected ") != std::string::npos);
}

TEST_CASE("a model keeps its description") {
  const std::shared_ptr<Model> model = Model::create(test::sample_description(3)).value();
  CHECK(model->layer_count() == 3);
  CHECK(model->hidden_size() == 12);
  CHECK(model->name() == "sample");
  const LayerRules& layer = model->layer(2);
  CHECK(layer.query_width() == 24);
  CHECK(layer.key_width() == 8);
  CHECK(layer.attention_scale == 0.75);
  CHECK(layer.norm_epsilon == 1e-5);
  CHECK(layer.rotation == test::sample_layer().rotation);
  CHECK(model->full_token_bytes() == 3 * 2 * 8 * 2);
  CHECK_FALSE(model->has_weights());
}

TEST_CASE("zero means default") {
  ModelDescription description;
  description.layers.emplace_back();
  description.layers[0].query_heads = 1;
  description.layers[0].kv_heads = 1;
  description.layers[0].head_size = 64;
  description.layers[0].rotation = RotationRules{Pairing::kHalfSplit, {1.0}, 0.0};
  const std::shared_ptr<Model> model = Model::create(description).value();
  CHECK(model->layer(0).attention_scale == 0.125);
  CHECK(model->layer(0).norm_epsilon == 1e-6);
  CHECK(model->layer(0).rotation->scale == 1.0);
  CHECK(model->layer(0).window == 0);
}

TEST_CASE("the largest and the smallest sizes are accepted") {
  CHECK(error_with([](LayerRules& layer) {
          layer = LayerRules{};
          layer.query_heads = layer.kv_heads = layer.head_size = 1;
        }).ok());
  CHECK(error_with([](LayerRules& layer) {
          layer = LayerRules{};
          layer.head_size = 512;
          layer.kv_heads = 1;
          layer.query_heads = 2048;
        }).ok());
  CHECK(error_with([](LayerRules& layer) { layer.soft_cap = 0.0; }).ok());
  CHECK(error_with([](LayerRules& layer) { layer.rotation.reset(); }).ok());
  CHECK(error_with([](LayerRules& layer) { layer.window = std::numeric_limits<int64_t>::max(); }).ok());
  CHECK(Model::create(test::sample_description(4096)).ok());
}

TEST_CASE("heads that do not fit are refused") {
  for (int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{513}, std::numeric_limits<int64_t>::max()}) {
    check_refused("head_size", [&](LayerRules& layer) { layer.head_size = bad; });
  }
  for (int64_t bad : {int64_t{0}, int64_t{-4}, int64_t{262145}, std::numeric_limits<int64_t>::max()}) {
    check_refused("kv_heads", [&](LayerRules& layer) { layer.kv_heads = bad; });
    check_refused("query_heads", [&](LayerRules& layer) { layer.query_heads = bad; });
  }
  check_refused("query_heads", [](LayerRules& layer) { layer.query_heads = 7; });
  check_refused("query_heads", [](LayerRules& layer) { layer.query_heads = 1; });
}

TEST_CASE("rotations that mean nothing are refused") {
  check_refused("rotation.pairing", [](LayerRules& layer) { layer.rotation->pairing = static_cast<Pairing>(0); });
  check_refused("rotation.pairing", [](LayerRules& layer) { layer.rotation->pairing = static_cast<Pairing>(3); });
  check_refused("rotation.frequency_count", [](LayerRules& layer) { layer.rotation->inverse_frequencies.clear(); });
  check_refused("rotation.frequency_count", [](LayerRules& layer) { layer.rotation->inverse_frequencies = {1, 1, 1}; });
  for (double bad : {kNan, kInfinity, -kInfinity, 65537.0, -1e300}) {
    check_refused("rotation.inverse_frequencies[1]",
                  [&](LayerRules& layer) { layer.rotation->inverse_frequencies[1] = bad; });
  }
  for (double bad : {kNan, kInfinity, -1.0, 1e39}) {
    check_refused("rotation.scale", [&](LayerRules& layer) { layer.rotation->scale = bad; });
  }
}

TEST_CASE("attention rules out of range are refused") {
  check_refused("window", [](LayerRules& layer) { layer.window = -1; });
  for (double bad : {kNan, kInfinity, -1.0, 1e39}) {
    check_refused("attention_scale", [&](LayerRules& layer) { layer.attention_scale = bad; });
    check_refused("soft_cap", [&](LayerRules& layer) { layer.soft_cap = bad; });
    check_refused("norm_epsilon", [&](LayerRules& layer) { layer.norm_epsilon = bad; });
  }
}

TEST_CASE("norms that do not fit are refused") {
  check_refused("query_norm", [](LayerRules& layer) { layer.query_norm.pop_back(); });
  check_refused("key_norm", [](LayerRules& layer) { layer.key_norm.push_back(1.0f); });
  check_refused("query_norm[2]", [](LayerRules& layer) { layer.query_norm[2] = kNanF32; });
  check_refused("key_norm[0]", [](LayerRules& layer) { layer.key_norm[0] = -std::numeric_limits<float>::infinity(); });
}

TEST_CASE("models out of range are refused") {
  const auto argument_with = [](const std::function<void(ModelDescription&)>& change) {
    ModelDescription description = test::sample_description(2);
    change(description);
    return argument_of(Model::create(description).status());
  };
  CHECK(argument_with([](ModelDescription& model) { model.layers.clear(); }) == "layer_count");
  CHECK(argument_with([](ModelDescription& model) { model.layers.resize(4097); }) == "layer_count");
  CHECK(argument_with([](ModelDescription& model) { model.hidden_size = -1; }) == "hidden_size");
  CHECK(argument_with([](ModelDescription& model) { model.hidden_size = (1 << 20) + 1; }) == "hidden_size");
  CHECK(argument_with([](ModelDescription& model) { model.name.assign(128, 'x'); }) == "name");
  CHECK(argument_with([](ModelDescription& model) { model.name.assign(127, 'x'); }).empty());
}

TEST_CASE("layers are of one kind when their keys and values mean the same") {
  const LayerRules layer = test::sample_layer();
  CHECK(layer.same_kind(layer));
  CHECK(layer.same_kind(changed([](LayerRules& other) { other.key_norm[0] = 9.0f; })));
  CHECK(layer.same_kind(changed([](LayerRules& other) { other.query_heads = 2; })));
  CHECK(layer.same_kind(changed([](LayerRules& other) { other.attention_scale = 2.0; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.kv_heads = 1; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.head_size = 8; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.window = 0; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.rotation.reset(); })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.rotation->scale = 1.0; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.rotation->inverse_frequencies[1] = 0.02; })));
  CHECK_FALSE(layer.same_kind(changed([](LayerRules& other) { other.key_norm.clear(); })));
}

TEST_CASE("every rule changes the fingerprint") {
  const LayerChange changes[] = {
      [](LayerRules& layer) { layer.query_heads = 4; },
      [](LayerRules& layer) { layer.kv_heads = 3; },
      [](LayerRules& layer) { layer.rotation.reset(); },
      [](LayerRules& layer) { layer.rotation->pairing = Pairing::kHalfSplit; },
      [](LayerRules& layer) { layer.rotation->inverse_frequencies[1] = 0.010000001; },
      [](LayerRules& layer) { layer.rotation->inverse_frequencies.pop_back(); },
      [](LayerRules& layer) { layer.rotation->scale = 1.0; },
      [](LayerRules& layer) { layer.window = 33; },
      [](LayerRules& layer) { layer.attention_scale = 0.5; },
      [](LayerRules& layer) { layer.soft_cap = 0.0; },
      [](LayerRules& layer) { layer.query_norm.clear(); },
      [](LayerRules& layer) { layer.query_norm[3] = 2.5f; },
      [](LayerRules& layer) { layer.key_norm.clear(); },
      [](LayerRules& layer) { layer.key_norm[0] = 0.25f; },
      [](LayerRules& layer) { layer.norm_epsilon = 1e-6; },
      [](LayerRules& layer) {
        layer.head_size = 8;
        layer.query_norm.assign(8, 1.0f);
        layer.key_norm.assign(8, 1.0f);
      },
  };
  const uint64_t unchanged = fingerprint_with([](LayerRules&) {});
  for (size_t index = 0; index < std::size(changes); ++index) {
    CAPTURE(index);
    CHECK(fingerprint_with(changes[index]) != unchanged);
  }
  CHECK(Model::create(test::sample_description(4)).value()->fingerprint() != unchanged);
}

TEST_CASE("the fingerprint stays: files hold it") {
  CHECK(fingerprint_with([](LayerRules&) {}) == kSampleFingerprint);
}

TEST_CASE("what a host computes to the precision of f32 gives the same fingerprint") {
  CHECK(fingerprint_with([](LayerRules& layer) {
          layer.rotation->inverse_frequencies[1] = std::nextafter(0.01, 1.0);
          layer.rotation->scale = std::nextafter(1.25, 0.0);
          layer.norm_epsilon = static_cast<double>(1e-5f);
        }) == kSampleFingerprint);
}

TEST_CASE("the order of layers counts") {
  ModelDescription description = test::sample_description(2);
  description.layers[0].window = 0;
  const uint64_t first = Model::create(description).value()->fingerprint();
  std::swap(description.layers[0], description.layers[1]);
  CHECK(Model::create(description).value()->fingerprint() != first);
}

TEST_CASE("name, hidden size and what has no effect do not change the fingerprint") {
  ModelDescription description = test::sample_description(3);
  description.name = "other";
  description.hidden_size = 0;
  CHECK(Model::create(description).value()->fingerprint() == kSampleFingerprint);
  const auto without_norms = [](double epsilon) {
    return fingerprint_with([&](LayerRules& layer) {
      layer.query_norm.clear();
      layer.key_norm.clear();
      layer.norm_epsilon = epsilon;
    });
  };
  CHECK(without_norms(1e-5) == without_norms(1e-6));
  const auto with_scale = [](double scale) {
    return fingerprint_with([&](LayerRules& layer) { layer.attention_scale = scale; });
  };
  CHECK(with_scale(0.0) == with_scale(1.0 / std::sqrt(4.0)));
}

}  // namespace
}  // namespace foldkv
