#include <cmath>
#include <string>
#include <vector>

#include "backends/reference/quantizer.h"
#include "doctest/doctest.h"
#include "tests/support/backends.h"
#include "tests/support/golden.h"
#include "tests/support/layer_group.h"

// Exact on both sides: the same latents give the same bytes, the same bytes the same numbers.
namespace foldkv {
namespace {

using backend::ScaleGroup;
using backend::Side;

TEST_CASE("quantization: the reference's quantizer") {
  const nlohmann::json file = test::read_golden("quantization");
  for (const nlohmann::json& golden : file["cases"]) {
    const auto bits = golden["bits"].get<int32_t>();
    const auto x = test::numbers_f32(golden["x"]);
    const auto group_width = golden["scale_group"].get<size_t>();
    std::vector<int32_t> codes(x.size());
    for (size_t first = 0, group = 0; first < x.size(); first += group_width, ++group) {
      const auto count = static_cast<int64_t>(std::min(group_width, x.size() - first));
      const uint16_t scale =
          backend::reference::quantize_group(x.data() + first, count, bits, codes.data() + first).value();
      CHECK(static_cast<double>(f32_from_f16(scale)) == golden["scales"][group].get<double>());
      for (size_t i = first; i < first + static_cast<size_t>(count); ++i) {
        CHECK(backend::reference::dequantize(codes[i], scale) == golden["back"][i].get<double>());
      }
    }
    CHECK(codes == golden["codes"].get<std::vector<int32_t>>());
  }
}

// With the identity as basis and no mean, a row is its own latent.
void check_case(backend::Backend& backend, const nlohmann::json& golden, Side side) {
  const auto x = test::numbers_f32(golden["x"]);
  const auto width = static_cast<int64_t>(x.size());
  const auto plane = test::make_plane({{width, golden["bits"].get<int32_t>()}}, golden["scale_group"].get<int64_t>());
  const auto layout = test::make_layout(plane, plane, 0, 2);
  const test::StackedPages exact({2, width, NumberFormat::kF32}, 1, 1, test::kPoison);
  const test::LatentPages latents(layout, 1, test::kPoison);
  const test::MemoryBlock workspace(backend.latent_workspace({width, width, width, 0, 1}), test::kPoison);
  std::vector<float> identity(x.size() * x.size(), 0.0f);
  for (size_t i = 0; i < x.size(); ++i) identity[i * x.size() + i] = 1.0f;
  exact.put(side, 0, x.data());
  REQUIRE(backend
              .encode({exact.rows(side, 0, 1), nullptr, identity.data(), &layout, latents.pool().pages(), 0,
                       workspace.data()})
              .ok());
  const auto codes = golden["codes"].get<std::vector<int32_t>>();
  int64_t index = 0;
  for (const ScaleGroup& group : plane.scale_groups) {
    const double scale = static_cast<double>(f32_from_f16(latents.scales(side, 0)[index]));
    CHECK(scale == golden["scales"][static_cast<size_t>(index++)].get<double>());
    for (int32_t i = 0; i < group.count; ++i) {
      CHECK(latents.code(side, 0, group, i) == codes[static_cast<size_t>(group.first + i)]);
    }
  }
  std::vector<float> back(x.size(), std::nanf(""));
  const backend::LatentRegion region{latents.pool().pages(), 1, nullptr, nullptr, nullptr};
  REQUIRE(
      backend.rebuild({&layout, region, side, 0, 1, identity.data(), 0, width, back.data(), workspace.data()}).ok());
  CHECK(back == test::numbers_f32(golden["back"]));
}

TEST_CASE("quantization: every backend encodes and rebuilds") {
  const nlohmann::json file = test::read_golden("quantization");
  for (const test::BackendChoice& choice : test::all_choices()) {
    CAPTURE(choice.name);
    const auto backend = test::open_backend(choice, 1);
    for (const nlohmann::json& golden : file["cases"]) {
      for (const Side side : {Side::kKeys, Side::kValues}) check_case(*backend, golden, side);
    }
  }
}

}  // namespace
}  // namespace foldkv
