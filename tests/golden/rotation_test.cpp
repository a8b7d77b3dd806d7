#include "backends/reference/rotation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/golden/golden_rotation.h"
#include "tests/support/backends.h"
#include "tests/support/golden.h"
#include "tests/support/number_io.h"

namespace foldkv {
namespace {

TEST_CASE("rotation: the reference in double precision") {
  const nlohmann::json file = test::read_golden("rotation");
  for (const nlohmann::json& golden : file["cases"]) {
    const auto frequencies = test::numbers(golden["inverse_frequencies"]);
    const backend::Rotation rotation = test::golden_rotation(golden, frequencies);
    const auto head_size = golden["head_size"].get<int64_t>();
    const auto heads = static_cast<int64_t>(golden["x"][0].size());
    std::vector<double> x = test::numbers(golden["x"]);
    const auto expected = test::numbers(golden["rotated"]);
    double* token = x.data();
    for (const nlohmann::json& position : golden["positions"]) {
      backend::reference::rotate_heads(rotation, position.get<int64_t>(), heads, head_size, token);
      token += heads * head_size;
    }
    REQUIRE(x.size() == expected.size());
    for (size_t i = 0; i < x.size(); ++i) CHECK(std::abs(x[i] - expected[i]) <= file["tolerance"].get<double>());
  }
}

TEST_CASE("rotation: every backend") {
  const nlohmann::json file = test::read_golden("rotation");
  for (const test::BackendChoice& choice : test::all_choices()) {
    CAPTURE(choice.name);
    const auto backend = test::open_backend(choice, 1);
    for (const nlohmann::json& golden : file["cases"]) {
      const auto frequencies = test::numbers(golden["inverse_frequencies"]);
      const test::PreparedRotation rotation(*backend, test::golden_rotation(golden, frequencies));
      const auto head_size = golden["head_size"].get<int64_t>();
      const auto heads = static_cast<int64_t>(golden["x"][0].size());
      const auto positions = golden["positions"].get<std::vector<int32_t>>();
      const auto rows = static_cast<int64_t>(positions.size());
      const test::TensorMemory input(NumberFormat::kF32, rows, heads * head_size, heads * head_size, test::kZero,
                                     test::numbers_f32(golden["x"]));
      const auto expected = test::numbers(golden["rotated"]);
      std::vector<float> output(expected.size(), std::nanf(""));
      REQUIRE(backend
                  ->prepare_heads(
                      {input.view(), heads, head_size, nullptr, 0.0, rotation.get(), positions.data(), output.data()})
                  .ok());
      for (size_t i = 0; i < expected.size(); ++i) {
        CHECK(std::abs(static_cast<double>(output[i]) - expected[i]) <= 1e-6 * std::max(1.0, std::abs(expected[i])));
      }
    }
  }
}

}  // namespace
}  // namespace foldkv
