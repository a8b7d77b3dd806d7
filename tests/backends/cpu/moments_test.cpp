#include <cmath>
#include <vector>

#include "tests/backends/cpu/instruction_sets.h"
#include "tests/support/random.h"

namespace foldkv::test {
namespace {

struct Moments {
  std::vector<double> sum;
  std::vector<double> products;
};

constexpr double kBefore = 0.25;

Moments run(const BackendChoice& choice, int32_t threads, const std::vector<float>& rows, int64_t width) {
  Moments moments{std::vector<double>(static_cast<size_t>(width), kBefore),
                  std::vector<double>(static_cast<size_t>(width * width), kBefore)};
  const auto backend = open_backend(choice, threads);
  REQUIRE(backend
              ->moments({rows.data(), std::ssize(rows) / width, width, moments.sum.data(), moments.products.data()})
              .ok());
  return moments;
}

TEST_CASE("moments against plain sums; the upper triangle stays as it was; the same on any number of threads") {
  Random random(1);
  for (const int64_t width : {1, 17, 48, 64, 65, 130, 193}) {
    for (const int64_t count : {0, 1, 63, 200}) {
      const std::vector<float> rows = random.normals<float>(width * count);
      for (const BackendChoice& choice : tested_choices()) {
        CAPTURE(choice.name);
        CAPTURE(width);
        CAPTURE(count);
        const Moments moments = run(choice, 1, rows, width);
        double worst = 0.0;
        int64_t touched = 0;
        for (int64_t i = 0; i < width; ++i) {
          double sum = kBefore;
          for (int64_t row = 0; row < count; ++row) {
            sum += static_cast<double>(rows[static_cast<size_t>(row * width + i)]);
          }
          worst = std::max(worst, std::abs(sum - moments.sum[static_cast<size_t>(i)]));
          for (int64_t j = 0; j < width; ++j) {
            const double actual = moments.products[static_cast<size_t>(i * width + j)];
            if (j > i) {
              touched += actual != kBefore ? 1 : 0;
              continue;
            }
            double product = kBefore;
            for (int64_t row = 0; row < count; ++row) {
              product += static_cast<double>(rows[static_cast<size_t>(row * width + i)]) *
                         static_cast<double>(rows[static_cast<size_t>(row * width + j)]);
            }
            worst = std::max(worst, std::abs(product - actual));
          }
        }
        CHECK(worst < 1e-11);
        CHECK(touched == 0);
        const Moments on_three = run(choice, 3, rows, width);
        CHECK(on_three.sum == moments.sum);
        CHECK(on_three.products == moments.products);
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
