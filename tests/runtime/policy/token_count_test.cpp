#include "runtime/policy/token_count.h"

#include <cmath>

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("ratios are what was written, not what binary makes of it") {
  const Ratio tenth = make_ratio("ratio", 1.0 - 0.9).value();
  CHECK(tenth == Ratio{1, 10});
  CHECK(count_of(tenth, 1000) == 100);
  CHECK(static_cast<int64_t>(1000 * (1.0 - 0.9)) == 99);  // the trap
  CHECK(make_ratio("ratio", 0.0).value() == Ratio{0, 1});
  CHECK(make_ratio("ratio", 1.0).value() == Ratio{1, 1});
  CHECK(make_ratio("ratio", 1.0 / 3.0).value() == Ratio{333'333'333, 1'000'000'000});
  for (int64_t percent = 0; percent <= 100; ++percent) {
    const Ratio ratio = make_ratio("ratio", static_cast<double>(percent) / 100.0).value();
    CHECK(count_of(ratio, 100'000) == percent * 1000);
    CHECK(count_of(ratio, 99) == percent * 99 / 100);
  }
  CHECK(count_of({999'999'999, 1'000'000'000}, int64_t{1} << 31) == (int64_t{1} << 31) - 3);
}

TEST_CASE("what is kept always comes on top") {
  CHECK(count_beside({1, 2}, 100, 68) == 84);  // methods.md section 13
  CHECK(count_beside({1, 2}, 69, 68) == 68);
  CHECK(count_beside({1, 2}, 50, 68) == 50);
  CHECK(count_beside({0, 1}, 75, 68) == 68);
  CHECK(count_beside({1, 1}, 120, 68) == 120);
}

TEST_CASE("shares outside 0 to 1 are refused by name") {
  CHECK(argument_of(make_ratio("keep_ratio", -0.1).status()) == "keep_ratio");
  CHECK(argument_of(make_ratio("keep_ratio", 1.1).status()) == "keep_ratio");
  CHECK(argument_of(make_ratio("keep_ratio", std::nan("")).status()) == "keep_ratio");
}

}  // namespace
}  // namespace foldkv
