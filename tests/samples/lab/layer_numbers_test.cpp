#include "samples/lab/layer_numbers.h"

#include <fstream>
#include <string>

#include "doctest/doctest.h"
#include "foldkv/foldkv.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

absl::StatusOr<LayerNumbers> load(const std::string& text) {
  const foldkv::test::TemporaryFolder folder;
  const std::string path = (folder.path() / "layers.json").string();
  std::ofstream(path) << text;
  return load_layer_numbers(path, 2);
}

TEST_CASE("lists of numbers, each for its allocator") {
  const auto numbers =
      load(R"({"value_sensitivities": [0.5, 1], "importances": [0, 2], "similarities": [-0.5, 1], "texts": ["a"]})");
  REQUIRE_MESSAGE(numbers.ok(), numbers.status().message());
  CHECK(*numbers->for_allocator(FOLDKV_LAYERS_RIPPLE) == std::vector<double>{0.5, 1});
  CHECK(*numbers->for_allocator(FOLDKV_LAYERS_IMPORTANCE) == std::vector<double>{0, 2});
  CHECK(*numbers->for_allocator(FOLDKV_LAYERS_EPISODE) == std::vector<double>{-0.5, 1});
  CHECK(numbers->for_allocator(FOLDKV_LAYERS_UNIFORM) == nullptr);
  CHECK(numbers->for_allocator(FOLDKV_LAYERS_CAKE) == nullptr);
}

TEST_CASE("lists may be absent, but not all") {
  const auto numbers = load(R"({"importances": [1, 2]})");
  REQUIRE(numbers.ok());
  CHECK(numbers->sensitivities.empty());
  CHECK(numbers->similarities.empty());
  CHECK(std::string(load("{}").status().message()).find("holds none") != std::string::npos);
}

TEST_CASE("what is no such file is refused in words") {
  const auto refused = [](const std::string& text, const std::string& words) {
    CAPTURE(text);
    const auto numbers = load(text);
    REQUIRE_FALSE(numbers.ok());
    const std::string message(numbers.status().message());
    CHECK(message.find("--layers: ") == 0);
    CHECK(message.find(words) != std::string::npos);
  };
  refused(" ", "no JSON object");
  refused("[1, 2]", "no JSON object");
  refused(R"({"importances": [1, 2)", "no JSON object");
  refused(R"({"importances": 3})", "importances is no list of numbers");
  refused(R"({"importances": ["a", "b"]})", "importances is no list of numbers");
  refused(R"({"importances": [1, null]})", "importances is no list of numbers");
  refused(R"({"importances": [1, -2]})", "importances is no list of numbers of 0 or more");
  refused(R"({"value_sensitivities": [1, 1e999]})", "no JSON object");
  refused(R"({"similarities": [1, 2, 3]})", "similarities has 3 layers, the model 2");
  CHECK_FALSE(load("").ok());
  CHECK_FALSE(load_layer_numbers("/nowhere/at/all", 2).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
