#include <algorithm>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/group_data.h"

// The two operations that find a sequence's correction: both work on the key residual.
namespace foldkv::test {
namespace {

using backend::Side;

struct CorrectionCase {
  GroupShape shape;
  int64_t columns = 0;    // of the sketch
  double residual = 1.0;  // size of the residual; rows are rebuilt rows plus that
};

// Exact rows a residual away from what their latents give, as after an encode.
void put_rows_near_rebuilt(const CorrectionCase& correction_case, GroupData& data) {
  const GroupShape& shape = data.shape;
  const backend::LatentPlane& plane = data.layout.keys;
  for (int64_t t = 0; t < shape.count; ++t) {
    std::vector<float> row;
    for (int64_t i = 0; i < shape.width(); ++i) {
      double sum = shape.means ? static_cast<double>(f32_from_f16(data.key_mean[static_cast<size_t>(i)])) : 0.0;
      for (const backend::ScaleGroup& group : plane.scale_groups) {
        const int64_t slot = shape.first_latent_slot + t;
        for (int32_t j = 0; j < group.count; ++j) {
          sum += data.latents.latent(Side::kKeys, slot, group, j) *
                 static_cast<double>(data.key_basis[static_cast<size_t>(i * plane.width + group.first + j)]);
        }
      }
      row.push_back(static_cast<float>(sum + correction_case.residual * data.random.normal()));
    }
    data.exact.put(Side::kKeys, shape.first_slot + t, row.data());
  }
}

Outcome run_sketch(const CorrectionCase& correction_case, backend::Backend& backend, std::byte fill) {
  GroupData data(correction_case.shape, 22, fill);
  put_rows_near_rebuilt(correction_case, data);
  const int64_t size = data.shape.width() * correction_case.columns;
  const auto test = data.random.normals<double>(size);
  const MemoryBlock sketch(size * int64_t{sizeof(double)}, fill);
  const MemoryBlock workspace(backend.latent_workspace(data.latent_shape(correction_case.columns)), fill);
  auto* const numbers = reinterpret_cast<double*>(sketch.data());
  Outcome outcome;
  outcome.set_status(
      backend.sketch({data.rows(Side::kKeys), &data.layout, data.region(true), data.shape.first_latent_slot,
                      data.key_basis.data(), test.data(), correction_case.columns, numbers, workspace.data()}));
  outcome.expect(sketch.canary_alive() && workspace.canary_alive(), "written beyond the sketch or the workspace");
  // A residual is the difference of f32 numbers about 1 / residual times larger.
  const double loss = 1e-6 / std::min(1.0, correction_case.residual);
  outcome.fields.push_back(
      numbers_field("sketch", std::vector<double>(numbers, numbers + size), size, {0.0, loss, 0.0}));
  return outcome;
}

Outcome run_coefficients(const CorrectionCase& correction_case, backend::Backend& backend, std::byte fill) {
  GroupData data(correction_case.shape, 23, fill);
  put_rows_near_rebuilt(correction_case, data);
  const int64_t rank = data.shape.correction_rank;
  const int64_t first = data.shape.first_latent_slot;
  const std::vector<std::byte> before = data.latents.pool().bytes();
  std::vector<uint16_t> old;
  for (int64_t t = 0; t < data.shape.count; ++t) {
    old.insert(old.end(), data.latents.coefficients(first + t), data.latents.coefficients(first + t) + rank);
  }
  const MemoryBlock workspace(backend.latent_workspace(data.latent_shape(rank)), fill);
  Outcome outcome;
  outcome.set_status(backend.coefficients(
      {data.rows(Side::kKeys), &data.layout, data.region(true), first, data.key_basis.data(), workspace.data()}));
  outcome.expect(data.canaries_alive() && workspace.canary_alive(), "written beyond the pages or the workspace");
  // Reads what was written, then puts back what was there: the rest of the pages must be as it was.
  std::vector<double> coefficients;
  for (int64_t t = 0; t < data.shape.count; ++t) {
    const auto row = wide_halves(data.latents.coefficients(first + t), rank);
    coefficients.insert(coefficients.end(), row.begin(), row.end());
    std::copy_n(old.begin() + t * rank, rank, data.latents.coefficients(first + t));
  }
  outcome.expect(data.latents.pool().bytes() == before, "written beside the coefficients of the tokens");
  // Of f16, or of the f32 numbers of about 1 whose difference the residual is.
  const Tolerance tolerance{step_of(NumberFormat::kF16), 0.0, 2e-6};
  outcome.fields.push_back(numbers_field("coefficients", coefficients, std::max<int64_t>(rank, 1), tolerance));
  return outcome;
}

using Run = Outcome (*)(const CorrectionCase&, backend::Backend&, std::byte);

Row row_of(const CorrectionCase& correction_case, Run run) {
  return {absl::StrCat(describe(correction_case.shape), ", ", correction_case.columns, " columns, residual ",
                       correction_case.residual),
          [correction_case, run](backend::Backend& backend, std::byte fill) {
            return run(correction_case, backend, fill);
          }};
}

CorrectionCase random_case(Random& random) {
  CorrectionCase correction_case{random_group(random), 0, random.uniform(0.05, 1.0)};
  GroupShape& shape = correction_case.shape;
  shape.correction_rank = random.between(1, std::min<int64_t>(9, shape.width()));
  shape.format = NumberFormat::kF32;
  correction_case.columns = random.between(shape.correction_rank, std::min<int64_t>(17, shape.width()));
  return correction_case;
}

void add_rows(Run run, OperationRows& table) {
  for (const NumberFormat format : all_formats()) {
    for (const bool means : {false, true}) {
      GroupShape shape;
      shape.layers = 3;
      shape.layer_width = 24;
      shape.key_bands = {{30, 8}, {20, 4}, {5, 0}};
      shape.value_bands = {{7, 4}};
      shape.scale_group = 16;
      shape.count = 70;
      shape.first_slot = 4;
      shape.first_latent_slot = 61;
      shape.format = format;
      shape.means = means;
      for (const auto& [rank, columns] : {std::pair<int64_t, int64_t>{1, 1}, {5, 13}, {16, 24}}) {
        shape.correction_rank = rank;
        table.rows.push_back(row_of({shape, columns, 1.0}, run));
        if (format == NumberFormat::kF32) table.rows.push_back(row_of({shape, columns, 0.02}, run));
      }
      shape.count = 1;
      table.rows.push_back(row_of({shape, 24, 1.0}, run));
    }
  }
}

}  // namespace

OperationRows sketch_rows() {
  OperationRows table{Operation::kSketch, {}, [](Random& random) { return row_of(random_case(random), run_sketch); }};
  add_rows(run_sketch, table);
  return table;
}

OperationRows coefficients_rows() {
  OperationRows table{
      Operation::kCoefficients, {}, [](Random& random) { return row_of(random_case(random), run_coefficients); }};
  add_rows(run_coefficients, table);
  // A coefficient beyond f16.
  GroupShape huge;
  huge.layer_width = 20;
  huge.key_bands = huge.value_bands = {{20, 4}};
  huge.correction_rank = 3;
  huge.count = 4;
  huge.format = NumberFormat::kF32;
  table.rows.push_back(row_of({huge, 3, 1e9}, run_coefficients));
  return table;
}

}  // namespace foldkv::test
