#include <vector>

#include "doctest/doctest.h"
#include "runtime/cache/exact_rows.h"
#include "tests/support/backends.h"
#include "tests/support/layer_group.h"
#include "tests/support/slots.h"

namespace foldkv::test {
namespace {

TEST_CASE("stacked rows of a run of slots, and of chosen ones") {
  constexpr int64_t kTokens = 40;
  const StackedPages pages({7, 5, NumberFormat::kF16}, 3, kTokens, kPoison);
  Random random(1);
  for (int64_t slot = 0; slot < kTokens; ++slot) {
    pages.put(backend::Side::kValues, slot, random.normals<float>(pages.width()).data());
  }
  for (const BackendChoice& choice : all_choices()) {
    CAPTURE(choice.name);
    const auto backend = open_backend(choice, 1);
    for (const double share : {0.0, 0.3, 0.8, 1.0}) {  // 0: a run
      const std::vector<int32_t> slots = random_slots(random, 3, kTokens, share);
      backend::StackedRows rows = pages.rows(backend::Side::kValues, 3, share == 0.0 ? kTokens - 3 : std::ssize(slots));
      if (share > 0.0) rows.slots = slots.data();
      const int64_t first = 2;
      const int64_t count = rows.count - 3;
      std::vector<float> output(static_cast<size_t>(count * rows.width()));
      REQUIRE(read_stacked_rows(*backend, rows, first, count, output.data()).ok());
      std::vector<double> expected;
      for (int64_t i = first; i < first + count; ++i) {
        const std::vector<double> row = pages.numbers(backend::Side::kValues, rows.slot(i), 1);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      CHECK(std::vector<double>(output.begin(), output.end()) == expected);
    }
  }
}

}  // namespace
}  // namespace foldkv::test
