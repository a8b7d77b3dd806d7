#include "runtime/policy/position_selection.h"

#include <numeric>

#include "doctest/doctest.h"
#include "runtime/policy/selection.h"

namespace foldkv {
namespace {

using Marks = std::vector<uint8_t>;

TEST_CASE("StreamingLLM's worked example: sinks, and of the others the newest") {
  std::vector<double> newer(10);
  std::iota(newer.begin(), newer.end(), 0.0);
  CHECK(select_tokens(newer, mark_ends(10, 2, 0), 6).value() == std::vector<int32_t>{0, 1, 6, 7, 8, 9});
}

TEST_CASE("ends that meet, and none") {
  CHECK(mark_ends(5, 1, 2) == Marks{1, 0, 0, 1, 1});
  CHECK(mark_ends(5, 2, 3) == Marks{1, 1, 1, 1, 1});
  CHECK(mark_ends(3, 4, 512) == Marks{1, 1, 1});
  CHECK(mark_ends(3, 0, 0) == Marks{0, 0, 0});
  CHECK(mark_ends(0, 4, 4).empty());
  CHECK(mark_ends(1, 0, 1) == Marks{1});
}

}  // namespace
}  // namespace foldkv
