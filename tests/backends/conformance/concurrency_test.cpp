#include <string>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/backends.h"

// What backend.h promises of every operation: calls from several threads at once, on different data.
namespace foldkv::test {
namespace {

constexpr int kThreads = 4;

// Every tenth row of an operation, so that small and large ones come by.
std::vector<Row> some_rows(const OperationRows& operation) {
  std::vector<Row> rows;
  for (size_t i = 0; i < operation.rows.size(); i += 10) rows.push_back(operation.rows[i]);
  return rows;
}

TEST_CASE("calls from several threads at once give what one call gives") {
  for (const BackendChoice& choice : all_choices()) {
    const auto backend = open_backend(choice, 3);
    for (const OperationRows& operation : operation_table()) {
      const std::vector<Row> rows = some_rows(operation);
      std::vector<Outcome> expected;
      for (const Row& row : rows) expected.push_back(row.run(*backend, kZero));
      std::vector<std::string> wrong(kThreads);
      std::vector<std::thread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          // Each thread begins elsewhere.
          for (size_t i = 0; i < rows.size(); ++i) {
            const size_t place = (i + rows.size() * static_cast<size_t>(thread) / kThreads) % rows.size();
            const std::string difference = bit_difference(expected[place], rows[place].run(*backend, kZero));
            if (!difference.empty()) wrong[static_cast<size_t>(thread)] = rows[place].name + ": " + difference;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const std::string& text : wrong) {
        CHECK_MESSAGE(text.empty(), absl::StrCat(choice.name, ", ", name_of(operation.operation), ", ", text));
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
