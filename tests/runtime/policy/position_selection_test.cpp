#include "runtime/policy/position_selection.h"

#include "doctest/doctest.h"

namespace foldkv {
namespace {

using Indices = std::vector<int32_t>;

TEST_CASE("StreamingLLM's worked example") { CHECK(select_ends(10, 2, 4) == Indices{0, 1, 6, 7, 8, 9}); }

TEST_CASE("ends that meet, and none") {
  CHECK(select_ends(5, 2, 3) == Indices{0, 1, 2, 3, 4});
  CHECK(select_ends(3, 4, 512) == Indices{0, 1, 2});
  CHECK(select_ends(3, 0, 0).empty());
  CHECK(select_ends(0, 4, 4).empty());
  CHECK(select_ends(1, 0, 1) == Indices{0});
  CHECK(mark_ends(5, 1, 2) == std::vector<uint8_t>{1, 0, 0, 1, 1});
}

}  // namespace
}  // namespace foldkv
