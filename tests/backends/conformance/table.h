#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backends/interface/backend.h"
#include "tests/backends/conformance/operation.h"
#include "tests/backends/conformance/outcome.h"
#include "tests/support/memory_block.h"
#include "tests/support/random.h"

namespace foldkv::test {

// One row of the table. Running it makes its data from a fixed seed, so that every backend sees the same; `fill` is
// what lies in memory that nobody has written (kZero or kPoison) and may not change the outcome.
struct Row {
  std::string name;
  std::function<Outcome(backend::Backend& backend, std::byte fill)> run;
};

struct OperationRows {
  Operation operation;
  std::vector<Row> rows;
  // A row of random shape; absent for operations without shapes.
  std::function<Row(Random& random)> random_row;
};

[[nodiscard]] OperationRows memory_rows();
[[nodiscard]] OperationRows copy_rows();
[[nodiscard]] OperationRows rotation_rows();
[[nodiscard]] OperationRows check_attention_rows();
[[nodiscard]] OperationRows product_rows();
[[nodiscard]] OperationRows all_finite_rows();
[[nodiscard]] OperationRows convert_rows();
[[nodiscard]] OperationRows prepare_heads_rows();
[[nodiscard]] OperationRows append_rows();
[[nodiscard]] OperationRows move_rows_rows();
[[nodiscard]] OperationRows attend_rows();
[[nodiscard]] OperationRows score_rows();
[[nodiscard]] OperationRows mean_rows();
[[nodiscard]] OperationRows encode_rows();
[[nodiscard]] OperationRows rebuild_rows();
[[nodiscard]] OperationRows sketch_rows();
[[nodiscard]] OperationRows coefficients_rows();
[[nodiscard]] OperationRows move_latents_rows();
[[nodiscard]] OperationRows moments_rows();

// The rows of every operation.
[[nodiscard]] std::vector<OperationRows> operation_table();

}  // namespace foldkv::test
