#include "runtime/policy/score_table.h"

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("scores lie head by head") {
  ScoreTable table(2, 3);
  table.scores = {0, 1, 2, 10, 11, 12};
  CHECK(table.head(1)[2] == 12.0);
  CHECK(table.head(0).size() == 3);
  CHECK(check_score_table("scores", table).ok());
  CHECK(check_score_table("scores", ScoreTable()).ok());
  table.scores.pop_back();
  CHECK(argument_of(check_score_table("scores", table)) == "scores");
  ScoreTable negative;
  negative.heads = -1;
  CHECK(argument_of(check_score_table("norms", negative)) == "norms");
}

}  // namespace
}  // namespace foldkv
