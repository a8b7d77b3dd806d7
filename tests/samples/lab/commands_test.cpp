// The commands one after the other, as a user types them.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "nlohmann/json.hpp"
#include "tests/samples/lab/command_desk.h"
#include "tests/samples/lab/stories.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("calibrate, inspect, generate, evaluate: JSON") {
  const Desk desk;
  using Json = nlohmann::json;
  const Json calibrated = Json::parse(desk.calibrate({"--layers-per-group", "2", "--bits", "8", "--json"}));
  CHECK(calibrated["groups"].size() == 3);
  CHECK(calibrated["run"]["tokens"].get<int64_t>() == 256 * calibrated["run"]["samples"].get<int64_t>());

  const Json inspected = Json::parse(run_well({"inspect", desk.profile(), "--json"}));
  CHECK(inspected["fingerprint"] == calibrated["fingerprint"]);
  CHECK(inspected["bytes_per_token"] == 3 * 2 * (32 + 2));
  CHECK(inspected["full_bytes_per_token"] == 640);

  const Json generated = Json::parse(run_well(desk.with_model(
      {"generate", "--profile", desk.profile(), "--prompt", "", "--tokens", "60", "--cache", "both", "--json"})));
  CHECK(generated["full"]["text"] == kStoriesText);
  CHECK(generated["full"]["bytes"] == 60 * 640);
  CHECK(generated["foldkv"]["prompt_tokens"] == 1);
  CHECK(generated["foldkv"]["tokens"].size() == 60);

  const Json evaluated = Json::parse(
      run_well(desk.with_model({"evaluate", "--profile", desk.profile(), "--text", desk.text(), "--length", "256",
                                "--prefix", "192", "--windows", "2", "--input", "qkv", "--feed", "8", "--json"})));
  REQUIRE(evaluated["codecs"].size() == 1);
  const Json& codec = evaluated["codecs"][0];
  CHECK(codec["name"] == "profile");
  CHECK(codec["profile"] == desk.profile());
  CHECK(codec["all"]["windows"] == 2);
  CHECK(codec["all"]["positions"] == 128);
  const double kl = codec["all"]["kl"];
  CHECK(kl > 0);
  CHECK(kl < 0.5);
  CHECK(codec["after_prefix"]["latent_tokens"] == 192 - 4 - 64);
  CHECK(codec["after_window"]["ratio"] < codec["after_prefix"]["ratio"]);
  CHECK(codec["latents"]["ratio"].get<double>() == doctest::Approx(640.0 / (3 * 2 * (32 + 2))));
}

TEST_CASE("several profiles and a task in one evaluation") {
  const Desk desk;
  (void)desk.calibrate({"--bits", "4"});
  const std::string copy = desk.profile() + "-again";
  std::filesystem::copy_file(desk.profile(), copy);
  const std::vector<std::string> arguments = desk.with_model(
      {"evaluate", "--profile", desk.profile(), "--profile", copy, "--text", desk.text(), "--length", "128", "--prefix",
       "100", "--windows", "1", "--task", "needle", "--trials", "2", "--task-length", "200"});
  const std::string table = run_well(arguments);
  CHECK(table.find("profile-again") != std::string::npos);
  CHECK(table.find("task needle, 2 trials") != std::string::npos);
  std::vector<std::string> for_json = arguments;
  for_json.push_back("--json");
  const nlohmann::json json = nlohmann::json::parse(run_well(for_json));
  REQUIRE(json["codecs"].size() == 2);
  CHECK(json["codecs"][0]["all"] == json["codecs"][1]["all"]);
  REQUIRE(json["tasks"].size() == 1);
  CHECK(json["tasks"][0]["task"] == "needle");
  // A model of tiny stories cannot do it.
  CHECK(json["tasks"][0]["usable"] == false);
  CHECK_FALSE(json["tasks"][0]["codecs"][0].contains("retention"));
}

TEST_CASE("bit plans from gradients, compared in one evaluation") {
  const Desk desk;
  using Json = nlohmann::json;
  const Json calibrated = Json::parse(desk.calibrate({"--plan", "4", "8", "--layers-per-group", "5", "--json"}));
  REQUIRE(calibrated["plans"].size() == 2);
  CHECK(calibrated["plans"][0]["name"] == "4x");
  CHECK(calibrated["plans"][0]["ratio"].get<double>() >= 4.0);
  CHECK(calibrated["plans"][1]["ratio"].get<double>() >= 8.0);
  CHECK(calibrated["plans"][1]["expected_cost"] > calibrated["plans"][0]["expected_cost"]);
  CHECK(run_well({"inspect", desk.profile()}).find("plan 8x") != std::string::npos);
  std::vector<std::string> arguments =
      desk.with_model({"evaluate", "--profile", desk.profile(), "--text", desk.text(), "--length", "256", "--prefix",
                       "192", "--windows", "2", "--feed", "8", "--json", "--plan"});
  arguments.push_back("all");
  const Json evaluated = Json::parse(run_well(arguments));
  REQUIRE(evaluated["codecs"].size() == 2);
  CHECK(evaluated["codecs"][1]["name"] == "profile 8x");
  CHECK(evaluated["codecs"][1]["profile"] == desk.profile());
  CHECK(evaluated["codecs"][1]["all"]["kl"] > evaluated["codecs"][0]["all"]["kl"]);
  CHECK(evaluated["codecs"][1]["latents"]["ratio"].get<double>() >= 8.0);
  arguments.back() = "9x";
  const Outcome refused = run(arguments);
  CHECK(std::string(refused.status.message()).find("--plan") != std::string::npos);
  const Json generated =
      Json::parse(run_well(desk.with_model({"generate", "--profile", desk.profile(), "--plan", "8x", "--prompt",
                                            "@" + desk.text(), "--prompt-tokens", "200", "--tokens", "5", "--json"})));
  CHECK(generated["foldkv"]["tokens"].size() == 5);
}

TEST_CASE("sensitivities are measured, stored, and followed by new plans") {
  const Desk desk;
  using Json = nlohmann::json;
  (void)desk.calibrate({"--plan", "4", "8", "--layers-per-group", "3"});
  const std::string result = desk.profile() + "-measured";
  std::vector<std::string> arguments =
      desk.with_model({"sensitivity", "--profile", desk.profile(), "--text", desk.text(), "--out", result, "--examples",
                       "1", "--length", "160", "--prefix", "128", "--seed", "3"});
  CHECK(run_well(arguments).find("values, KL") != std::string::npos);
  arguments.insert(arguments.end(), {"--json", "--keys", "--groups", "8x", "--plan", "8", "16"});
  const Json measured = Json::parse(run_well(arguments));
  REQUIRE(measured["layers"].size() == 5);
  CHECK(measured["layers"][4]["values"]["kl"] > 0);
  CHECK(measured["layers"][0]["keys"]["examples"] == 1);
  CHECK(measured["text"] == "text");
  CHECK(measured["seed"] == 3);
  REQUIRE(measured["groups"].size() == 2);
  double weights = 0;
  for (const Json& group : measured["groups"]) {
    weights += group["keys"]["weight"].get<double>() + group["values"]["weight"].get<double>();
  }
  CHECK(weights == doctest::Approx(4.0));
  const Json inspected = Json::parse(run_well({"inspect", result, "--json"}));
  REQUIRE(inspected["plans"].size() == 2);
  CHECK(inspected["plans"][1]["name"] == "16x");
  CHECK(inspected["sensitivity"]["layers"] == measured["layers"]);
  CHECK(run_well({"inspect", result}).find("values, KL") != std::string::npos);
  CHECK(run_well({"inspect", desk.profile()}).find("values, KL") == std::string::npos);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> changed =
        desk.with_model({"sensitivity", "--profile", desk.profile(), "--text", desk.text(), "--out", result});
    changed.insert(changed.end(), more.begin(), more.end());
    return std::string(run(changed).status.message());
  };
  CHECK(refused({"--plan", "8"}).find("--plan needs --groups") != std::string::npos);
  CHECK(refused({"--groups", "9x"}).find("no plan \"9x\"") != std::string::npos);
  CHECK(refused({"--length", "160", "--prefix", "160"}).find("prefix of 160") != std::string::npos);
}

TEST_CASE("a plan is chosen from a wish") {
  const Desk desk;
  using Json = nlohmann::json;
  (void)desk.calibrate({"--plan", "4", "8", "--layers-per-group", "3"});
  const auto chosen = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        desk.with_model({"plan", "--profile", desk.profile(), "--tokens", "400", "--sequences", "2", "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Json::parse(run_well(arguments));
  };
  const Json free = chosen({"--budget", "64MiB"});
  CHECK(free["choice"]["plan"] == "4x");
  CHECK(free["choice"]["budget_bytes"] == 64 << 20);
  REQUIRE(free["plans"].size() == 2);
  CHECK(free["plans"][0]["sequence_bytes"] > free["plans"][1]["sequence_bytes"]);
  CHECK(chosen({"--ratio", "6"})["choice"]["plan"] == "8x");
  const auto tight = free["choice"]["total_bytes"].get<int64_t>() * 2 / 3;
  const Json shared = chosen({"--budget", std::to_string(tight) + "B"});
  CHECK(shared["choice"]["plan"] == "8x");
  CHECK(shared["choice"]["total_bytes"] <= tight);
  const std::string words = run_well(desk.with_model(
      {"plan", "--profile", desk.profile(), "--tokens", "400", "--budget", "64 MiB", "--generated", "10"}));
  CHECK(words.find("* 4x") != std::string::npos);
  CHECK(words.find("1 sequence of 400 + 10 tokens, in 64.0 MiB") != std::string::npos);
  const Outcome refused =
      run(desk.with_model({"plan", "--profile", desk.profile(), "--tokens", "400", "--ratio", "80"}));
  CHECK(std::string(refused.status.message()).find("nearest") != std::string::npos);
}

TEST_CASE("the same in words") {
  const Desk desk;
  CHECK(desk.calibrate({"--no-centre", "--rotate", "--scale-group", "16", "--correction-rank", "2", "--key-bands",
                        "16x8,16x4"})
            .find("not centred") != std::string::npos);
  const std::string inspected = run_well({"inspect", desk.profile()});
  CHECK(inspected.find("16x8,16x4") != std::string::npos);
  CHECK(inspected.find("0-3") != std::string::npos);
  const std::string generated = run_well(
      desk.with_model({"generate", "--profile", desk.profile(), "--prompt", "@" + desk.text(), "--prompt-tokens", "200",
                       "--tokens", "20", "--cache", "both", "--temperature", "0.8", "--seed", "3"}));
  CHECK(generated.find("--- foldkv") != std::string::npos);
  CHECK(generated.find("tokens are equal") != std::string::npos);
  const std::string evaluated =
      run_well(desk.with_model({"evaluate", "--profile", desk.profile(), "--text", desk.text(), "--length", "128",
                                "--prefix", "100", "--windows", "1", "--mean", "profile", "--arithmetic", "fast", "--codec", "int8", "kivi2",
                                "xkv4"}));
  CHECK(evaluated.find("one compressed token") != std::string::npos);
  CHECK(evaluated.find("\nkivi2") != std::string::npos);
  const std::string shared = run_well(desk.with_model({"share", "--text", desk.text(), "--out", desk.profile() + ".shared",
                                                       "--layers", "1", "--threshold", "-2", "--sequences", "2"}));
  CHECK(shared.find("read the keys and values of layers 0 ") != std::string::npos);
  CHECK(run_well({"inspect", desk.profile() + ".shared"}).find(" reads the keys and values of layer ") !=
        std::string::npos);
}

TEST_CASE("what does not fit together is refused in words") {
  const Desk desk;
  (void)desk.calibrate({"--bits", "4"});
  std::ofstream(desk.profile(), std::ios::app) << "x";
  const Outcome broken = run({"inspect", desk.profile()});
  CHECK_FALSE(broken.status.ok());
  CHECK(std::string(broken.status.message()).find("FOLDKV_E_CORRUPT") != std::string::npos);
  CHECK_FALSE(run(desk.with_model({"generate", "--prompt", "@/nowhere/at/all"})).status.ok());
  CHECK_FALSE(run(desk.with_model({"generate", "--prompt", "a", "--backend", "none"})).status.ok());
  CHECK_FALSE(
      run(desk.with_model({"calibrate", "--text", desk.text(), "--out", desk.profile(), "--bits", "77"})).status.ok());
  const auto evaluated = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = desk.with_model({"evaluate", "--text", desk.text(), "--windows", "0"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::string(run(arguments).status.message());
  };
  CHECK(evaluated({}).find("--windows 0") != std::string::npos);
  CHECK(evaluated({"--task", "chess"}).find("no task \"chess\"; expected one of needle") != std::string::npos);
  CHECK(evaluated({"--task", "copy", "--task-length", "30"}).find("contexts of 30 tokens") != std::string::npos);
  CHECK(evaluated({"--task", "copy", "--task-length", "90000"}).find("no text holds") != std::string::npos);
  CHECK(evaluated({"--task", "copy", "--trials", "0"}).find("0 trials") != std::string::npos);
}

}  // namespace
}  // namespace foldkv_lab::test
