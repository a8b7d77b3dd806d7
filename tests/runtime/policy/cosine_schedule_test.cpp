#include "runtime/policy/cosine_schedule.h"

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("from 1 by half a cosine, each layer of what the one before it kept") {
  const std::vector<double> ratios = cosine_ratios(4, 0.5).value();
  REQUIRE(ratios.size() == 4);
  CHECK(ratios[0] == 1.0);
  CHECK(ratios[1] == doctest::Approx(0.5 * (1.0 + std::sqrt(0.5)) / 2.0 + 0.5));
  CHECK(ratios[2] == doctest::Approx(0.75));
  CHECK(ratios[3] > 0.5);
  const std::vector<double> shares = compound_shares(ratios);
  CHECK(shares[2] == doctest::Approx(ratios[1] * 0.75));
  CHECK(compound_counts(ratios, 1000) == std::vector<int64_t>{1000, 926, 694, 397});
  CHECK(compound_counts(std::vector<double>{0.5, 0.5}, 7) == std::vector<int64_t>{3, 1});
  CHECK(cosine_ratios(3, 1.0).value() == std::vector<double>(3, 1.0));
  CHECK(cosine_ratios(0, 0.9).value().empty());
}

TEST_CASE("schedule: wrong arguments are named") {
  CHECK(argument_of(cosine_ratios(-1, 0.9).status()) == "layers");
  CHECK(argument_of(cosine_ratios(4, 1.1).status()) == "decay");
}

}  // namespace
}  // namespace foldkv
