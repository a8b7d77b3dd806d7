// What policies want to know of layers, measured and handed on as a user does it.

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "nlohmann/json.hpp"
#include "samples/lab/rank_correlation.h"
#include "tests/samples/lab/command_desk.h"

namespace foldkv_lab::test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> layers(const Desk& desk, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = desk.with_model(
      {"layers", "--text", desk.text(), "--out", desk.file("layers.json"), "--length", "160", "--cut-to", "16"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("layers are measured, written, and read by the policies that need them") {
  const Desk desk;
  const std::string table = run_well(layers(desk, {"--examples", "2", "--prefix", "128"}));
  CHECK(table.find("cut alone, KL") != std::string::npos);
  CHECK(table.find("rank correlation of value noise with cut alone") != std::string::npos);
  const Json report = Json::parse(foldkv::test::read_text(desk.file("layers.json")));
  CHECK(report["texts"] == Json::array({"text"}));
  CHECK(report["options"]["examples"] == 2);
  CHECK(report["options"]["cut_to"] == 16);
  const auto list = [&](const Json& numbers) {
    CHECK(numbers.size() == 5);
    return numbers.get<std::vector<double>>();
  };
  const std::vector<double> noise = list(report["value_sensitivities"]);
  const std::vector<double> damages = list(report["importances"]);
  const std::vector<double> similarities = list(report["similarities"]);
  for (size_t layer = 0; layer < 5; ++layer) {
    CHECK(noise[layer] > 0);
    CHECK(damages[layer] > 0);
    CHECK(noise[layer] == doctest::Approx((report["sensitivity_halves"][0][layer].get<double>() +
                                           report["sensitivity_halves"][1][layer].get<double>()) / 2));
    CHECK(similarities[layer] <= 1.0 + 1e-6);
  }
  // Keys of the first layer depend on their own token alone, those of the last on all before.
  CHECK(similarities[0] == doctest::Approx(1.0));
  CHECK(similarities[4] < 0.9999);
  CHECK(report["rank_correlations"]["sensitivity_importance"] == rank_correlation(noise, damages));
  const Json evaluated = Json::parse(run_well(desk.with_model(
      {"evaluate", "--text", desk.text(), "--length", "256", "--prefix", "192", "--windows", "1", "--feed", "64",
       "--policy", "ripplekv", "compresskv", "epicache", "ripple-bellows", "--keep", "1/2", "--layers",
       desk.file("layers.json"), "--json"})));
  REQUIRE(evaluated["codecs"].size() == 4);
  for (const Json& codec : evaluated["codecs"]) {
    CAPTURE(codec["name"].get<std::string>());
    CHECK(codec["after_prefix"]["kept"].get<double>() == doctest::Approx(0.5).epsilon(0.03));
  }
}

TEST_CASE("what cannot be measured") {
  const Desk desk;
  const auto refused = [&](const std::vector<std::string>& more) {
    const Outcome outcome = run(layers(desk, more));
    CHECK_FALSE(outcome.status.ok());
    CHECK_FALSE(std::ifstream(desk.file("layers.json")).good());
    return std::string(outcome.status.message());
  };
  CHECK(refused({"--examples", "2", "--prefix", "160"}).find("prefix of 160") != std::string::npos);
  CHECK(refused({"--examples", "1", "--prefix", "128"}).find("2 texts or more") != std::string::npos);
  CHECK(refused({"--examples", "2", "--prefix", "128", "--sinks", "0"}).find("0 sinks") != std::string::npos);
}

}  // namespace
}  // namespace foldkv_lab::test
