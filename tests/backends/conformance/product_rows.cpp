#include <cmath>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/number_io.h"

namespace foldkv::test {
namespace {

struct ProductCase {
  backend::ProductShape shape;
  bool bias = false;
  NumberFormat bias_format = NumberFormat::kF32;
  int64_t padding = 0;  // between rows of the weight
};

Outcome run(const ProductCase& product_case, backend::Backend& backend, std::byte fill) {
  const backend::ProductShape& shape = product_case.shape;
  Random random(11);
  const auto x = random.normals<float>(shape.rows * shape.inner);
  const TensorMemory weight(
      shape.weight_format, shape.columns, shape.inner, shape.inner + product_case.padding, fill,
      random.normals<float>(shape.columns * shape.inner, 1.0 / std::sqrt(static_cast<double>(shape.inner))));
  const TensorMemory bias(product_case.bias_format, 1, shape.columns, shape.columns, fill,
                          random.normals<float>(shape.columns));
  const TensorMemory y(NumberFormat::kF32, shape.rows, shape.columns, shape.columns, fill);
  Outcome outcome;
  auto product = backend.make_product(shape);
  outcome.set_status(product.status());
  if (!product.ok()) return outcome;
  const MemoryBlock workspace((*product)->workspace_bytes(), fill);
  const TensorView no_bias;
  // Twice: what the first run left behind may not matter.
  for (int time = 0; time < 2; ++time) {
    outcome.set_status((*product)->run({x.data(), weight.view(), product_case.bias ? bias.view() : no_bias,
                                        reinterpret_cast<float*>(y.view().data), workspace.data()}));
  }
  outcome.expect(workspace.canary_alive() && y.canary_alive(), "written beyond the workspace or the result");
  outcome.fields.push_back(numbers_field("y", y.numbers(), shape.columns, {0.0, 5e-6, 1e-6}));
  return outcome;
}

Row row_of(const ProductCase& product_case) {
  const backend::ProductShape& shape = product_case.shape;
  std::string name = absl::StrCat(shape.rows, " x ", shape.inner, " x ", shape.columns, " ",
                                  std::string(name_of(shape.weight_format)), product_case.bias ? " bias" : "",
                                  shape.deterministic ? " deterministic" : "", " padding ", product_case.padding);
  return {std::move(name),
          [product_case](backend::Backend& backend, std::byte fill) { return run(product_case, backend, fill); }};
}

Row random_row(Random& random) {
  ProductCase product_case;
  product_case.shape = {random.between(1, 40), random.between(1, 150), random.between(1, 150),
                        random.pick(all_formats()), random.chance(0.5)};
  product_case.bias = random.chance(0.5);
  product_case.bias_format = random.pick(all_formats());
  product_case.padding = random.between(0, 3);
  return row_of(product_case);
}

}  // namespace

OperationRows product_rows() {
  OperationRows table{Operation::kProduct, {}, random_row};
  for (const NumberFormat format : all_formats()) {
    for (const bool deterministic : {false, true}) {
      for (const int64_t rows : {1, 7, 65}) {
        table.rows.push_back(row_of({{rows, 96, 80, format, deterministic}, false, format, 0}));
        table.rows.push_back(row_of({{rows, 96, 80, format, deterministic}, true, NumberFormat::kF32, 0}));
      }
      table.rows.push_back(row_of({{3, 1, 1, format, deterministic}, true, format, 0}));
      table.rows.push_back(row_of({{1, 577, 193, format, deterministic}, true, format, 7}));
      table.rows.push_back(row_of({{33, 63, 129, format, deterministic}, true, format, 1}));
    }
  }
  return table;
}

}  // namespace foldkv::test
