#include "samples/lab/token_budget.h"

#include <string>

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

double share_of(const std::string& text) {
  const auto budget = parse_share(text);
  REQUIRE_MESSAGE(budget.ok(), budget.status().message());
  CHECK(budget->tokens == 0);
  return budget->share;
}

TEST_CASE("shares are decimals or fractions") {
  CHECK(share_of("0.25") == 0.25);
  CHECK(share_of("1/4") == 0.25);
  CHECK(share_of("3/4") == 0.75);
  CHECK(share_of("1") == 1.0);
  for (const char* wrong : {"", "0", "-0.5", "1.01", "5/4", "1/0", "1/2/3", "half", "1/", "/2", "nan", "inf", "256"}) {
    CAPTURE(wrong);
    const auto refused = parse_share(wrong);
    REQUIRE_FALSE(refused.ok());
    CHECK(std::string(refused.status().message()).find("--keep") != std::string::npos);
  }
}

TEST_CASE("parts of a whole are named as such") {
  CHECK(budget_name({.share = 0.125}) == "1/8");
  CHECK(budget_name({.share = 1.0 / 3.0}) == "1/3");
  CHECK(budget_name({.share = 1.0}) == "1");
  CHECK(budget_name({.share = 0.3}) == "0.3");
  CHECK(budget_name({.share = 0.333}) == "0.333");
  CHECK(budget_name({.share = 0.999}) == "0.999");
  CHECK(budget_name({.tokens = 256}) == "256");
}

}  // namespace
}  // namespace foldkv_lab::test
