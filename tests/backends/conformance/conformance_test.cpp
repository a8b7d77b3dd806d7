#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/conformance/subjects.h"
#include "tests/support/backends.h"

namespace foldkv::test {
namespace {

TEST_CASE("every operation of every backend does what the reference does") {
  for (const OperationRows& operation : operation_table()) {
    SUBCASE(name_of(operation.operation)) {
      for (const Row& row : operation.rows) check_row(operation.operation, row);
      for (const Subject& subject : subjects()) {
        CAPTURE(subject.name);
        for (const auto* backend : {&subject.one_thread, &subject.three_threads, &subject.host_threads}) {
          CHECK_MESSAGE((*backend)->allocations(operation.operation) == 0, "the operation allocated memory");
        }
      }
    }
  }
}

TEST_CASE("every operation is in the table once, with rows") {
  std::vector<int> places(kOperationNames.size(), 0);
  for (const OperationRows& operation : operation_table()) {
    CHECK_MESSAGE(!operation.rows.empty(), std::string(name_of(operation.operation)));
    ++places[static_cast<size_t>(operation.operation)];
  }
  for (size_t i = 0; i < places.size(); ++i) CHECK_MESSAGE(places[i] == 1, std::string(kOperationNames[i]));
}

TEST_CASE("backends that were asked for opened with their instruction set and threads") {
  const std::vector<BackendChoice> choices = all_choices();
  REQUIRE(choices.size() == subjects().size());
  for (size_t i = 0; i < choices.size(); ++i) {
    const Subject& subject = subjects()[i];
    CHECK(subject.one_thread->name() == choices[i].plugin->name);
    CHECK(subject.one_thread->host_memory());  // the suite makes its data in host memory
    CHECK(subject.one_thread->thread_count() == 1);
    if (i == 0) continue;  // the reference has no other choice
    CHECK(subject.one_thread->instruction_set() == choices[i].instruction_set);
    CHECK(subject.three_threads->thread_count() == 3);
  }
}

}  // namespace
}  // namespace foldkv::test
