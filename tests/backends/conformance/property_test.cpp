#include "doctest/doctest.h"
#include "tests/backends/conformance/subjects.h"

namespace foldkv::test {
namespace {

constexpr int kRowsOfOperation = 60;

TEST_CASE("random shapes: every operation of every backend does what the reference does") {
  for (const OperationRows& operation : operation_table()) {
    if (operation.random_row == nullptr) continue;
    SUBCASE(name_of(operation.operation)) {
      Random random(100 + static_cast<uint64_t>(operation.operation));
      for (int i = 0; i < kRowsOfOperation; ++i) check_row(operation.operation, operation.random_row(random));
    }
  }
}

}  // namespace
}  // namespace foldkv::test
