// Eviction policies through the evaluate command, as a user types it.

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "nlohmann/json.hpp"
#include "tests/samples/lab/command_desk.h"

namespace foldkv_lab::test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> evaluation(const Desk& desk, const std::vector<std::string>& more) {
  std::vector<std::string> arguments =
      desk.with_model({"evaluate", "--text", desk.text(), "--length", "256", "--prefix", "192", "--windows", "2",
                       "--feed", "16", "--dtype", "f32"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Json evaluated(const Desk& desk, std::vector<std::string> more) {
  more.push_back("--json");
  return Json::parse(run_well(evaluation(desk, more)));
}

std::string refused(const Desk& desk, const std::vector<std::string>& more) {
  const Outcome outcome = run(evaluation(desk, more));
  CHECK_FALSE(outcome.status.ok());
  return std::string(outcome.status.message());
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("all tokens lose nothing, a quarter of them is a quarter") {
  const Desk desk;
  const Json result = evaluated(desk, {"--policy", "snapkv", "h2o", "--keep", "1", "1/4", "--keep-tokens", "60"});
  const Json& codecs = result["codecs"];
  REQUIRE(codecs.size() == 6);
  const std::vector<std::string> names = {"snapkv 1", "snapkv 1/4", "snapkv 60", "h2o 1", "h2o 1/4", "h2o 60"};
  const std::vector<double> kept = {1.0, 0.25, 60.0 / 192.0, 1.0, 0.25, 60.0 / 192.0};
  for (size_t i = 0; i < codecs.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(codecs[i]["name"] == names[i]);
    CHECK(codecs[i]["after_prefix"]["kept"].get<double>() == doctest::Approx(kept[i]));
    CHECK(codecs[i]["after_prefix"]["fed_head_tokens"] == 192 * 5 * 4);
    // What follows the prefix stays.
    const Json& window = codecs[i]["after_window"];
    CHECK(window["held_head_tokens"] ==
          codecs[i]["after_prefix"]["held_head_tokens"].get<int64_t>() + 64 * 5 * 4);
    const double kl = codecs[i]["all"]["kl"];
    if (kept[i] == 1.0) CHECK(std::abs(kl) < 1e-6);
    if (kept[i] < 1.0) CHECK(kl > 1e-4);
    CHECK(codecs[i]["all"]["window_kl"].size() == 2);
  }
  CHECK(codecs[1]["after_prefix"]["bytes"] < codecs[0]["after_prefix"]["bytes"]);
  CHECK(holds(run_well(evaluation(desk, {"--policy", "tova", "--keep", "0.3"})), "tova 0.3"));
}

TEST_CASE("every policy that needs no numbers of layers, and a task") {
  const Desk desk;
  const Json result = evaluated(desk, {"--policy", "all", "--keep", "0.5", "--task", "needle", "--trials", "1",
                                       "--task-length", "200"});
  const Json& codecs = result["codecs"];
  CHECK(codecs.size() >= 22 - 4);
  CHECK(codecs[0]["name"] == "full");
  CHECK(codecs[0]["after_prefix"]["kept"] == 1.0);
  for (const Json& codec : codecs) {
    CAPTURE(codec["name"].get<std::string>());
    CHECK(std::isfinite(codec["all"]["kl"].get<double>()));
    CHECK_FALSE(holds(codec["name"], "ripple"));
  }
  CHECK(result["tasks"][0]["codecs"][1]["kept"].get<double>() < 0.6);
}

TEST_CASE("eviction on latents: each policy on each plan") {
  const Desk desk;
  (void)desk.calibrate({"--plan", "4", "8", "--layers-per-group", "3"});
  const Json codecs = evaluated(desk, {"--profile", desk.profile(), "--plan", "all", "--policy", "bellowskv-evict",
                                       "snapkv", "--keep", "1/2"})["codecs"];
  REQUIRE(codecs.size() == 4);
  CHECK(codecs[0]["name"] == "profile 4x + bellowskv-evict 1/2");
  CHECK(codecs[3]["name"] == "profile 8x + snapkv 1/2");
  for (const Json& codec : codecs) {
    CHECK(codec["profile"] == desk.profile());
    CHECK(codec["after_prefix"]["kept"] == 0.5);
  }
}

TEST_CASE("what does not fit together is refused before anything runs") {
  const Desk desk;
  CHECK(holds(refused(desk, {"--policy", "snapkv"}), "--policy needs --keep"));
  CHECK(holds(refused(desk, {"--keep", "0.5"}), "need --policy"));
  CHECK(holds(refused(desk, {"--policy", "snapkv", "--keep", "2"}), "--keep: got \"2\""));
  CHECK(holds(refused(desk, {"--policy", "magic", "--keep", "0.5"}), "bellowskv-evict"));
  CHECK(holds(refused(desk, {"--policy", "snapkv", "--keep-tokens", "20"}), "32 tokens are kept always"));
  CHECK(holds(refused(desk, {"--policy", "snapkv", "snapkv", "--keep", "0.5"}), "two codecs are named"));
  const std::string without = refused(desk, {"--policy", "epicache", "--keep", "0.5"});
  CHECK(holds(without, "--policy epicache 1/2"));
  CHECK(holds(without, "see --layers"));
  const std::string numbers = desk.file("layers.json");
  std::ofstream(numbers) << R"({"similarities": [1, 2, 3]})";
  CHECK(holds(refused(desk, {"--policy", "epicache", "--keep", "0.5", "--layers", numbers}), "3 layers, the model 5"));
  std::ofstream(numbers) << R"({"similarities": [1, 2, 3, 4, 5]})";
  CHECK(holds(refused(desk, {"--policy", "compresskv", "--keep", "0.5", "--layers", numbers}), "see --layers"));
  CHECK(evaluated(desk, {"--policy", "epicache", "--keep", "0.5", "--layers", numbers})["codecs"].size() == 1);
}

}  // namespace
}  // namespace foldkv_lab::test
