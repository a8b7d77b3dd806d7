#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {
namespace {

struct MomentsCase {
  int64_t count = 0;
  int64_t width = 1;
  double size = 1.0;
};

Outcome run(const MomentsCase& moments_case, backend::Backend& backend, std::byte fill) {
  const int64_t width = moments_case.width;
  Random random(19);
  const TensorMemory rows(NumberFormat::kF32, moments_case.count, width, width, fill,
                          random.normals<float>(moments_case.count * width, moments_case.size));
  // Sums go on from what is there; the upper triangle is nobody's.
  std::vector<double> sum = random.normals<double>(width);
  const MemoryBlock products(width * width * int64_t{sizeof(double)}, fill);
  auto* const product = reinterpret_cast<double*>(products.data());
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j <= i; ++j) product[i * width + j] = random.normal();
  }
  Outcome outcome;
  outcome.set_status(backend.moments(
      {reinterpret_cast<const float*>(rows.view().data), moments_case.count, width, sum.data(), product}));
  outcome.expect(products.canary_alive(), "written beyond the products");
  std::vector<double> lower;
  for (int64_t i = 0; i < width; ++i) lower.insert(lower.end(), product + i * width, product + i * width + i + 1);
  outcome.fields.push_back(numbers_field("sum", sum, width, {1e-12, 1e-12, 0.0}));
  outcome.fields.push_back(numbers_field("products", lower, static_cast<int64_t>(lower.size()), {1e-12, 1e-12, 0.0}));
  return outcome;
}

Row row_of(const MomentsCase& moments_case) {
  return {absl::StrCat(moments_case.count, " rows of ", moments_case.width, " size ", moments_case.size),
          [moments_case](backend::Backend& backend, std::byte fill) { return run(moments_case, backend, fill); }};
}

Row random_row(Random& random) { return row_of({random.between(0, 70), random.between(1, 90), 1.0}); }

}  // namespace

OperationRows moments_rows() {
  OperationRows table{Operation::kMoments, {}, random_row};
  for (const int64_t width : {1, 2, 7, 8, 33, 64, 130}) {
    for (const int64_t count : {0, 1, 5, 64, 131}) table.rows.push_back(row_of({count, width, 1.0}));
  }
  // Squares beyond f32, and far below it.
  table.rows.push_back(row_of({9, 12, 1e25}));
  table.rows.push_back(row_of({9, 12, 1e-30}));
  return table;
}

}  // namespace foldkv::test
