// Calibrations in parts, what is held out of them, and what is refused before they begin.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/Error.hpp"
#include "doctest/doctest.h"
#include "nlohmann/json.hpp"
#include "tests/samples/lab/command_desk.h"

namespace foldkv_lab::test {
namespace {

using Json = nlohmann::json;

TEST_CASE("a checkpoint alone, then a profile from it without running anything") {
  const Desk desk;
  const std::string checkpoint = desk.file("checkpoint");
  const std::vector<std::string> options = {"--sequences", "4", "--layers-per-group", "2", "--json"};
  const Json whole = Json::parse(desk.calibrate(options));
  CHECK(run_well(desk.with_model({"calibrate", "--text", desk.text(), "--tokens-per-sample", "256", "--sequences", "4",
                                  "--layers-per-group", "2", "--checkpoint", checkpoint}))
            .empty());
  std::vector<std::string> again = options;
  again.insert(again.end(), {"--checkpoint", checkpoint});
  CHECK(Json::parse(desk.calibrate(again))["fingerprint"] == whole["fingerprint"]);
  const auto merged = [&](const std::vector<std::string>& files) {
    std::vector<std::string> arguments =
        desk.with_model({"calibrate", "--sequences", "0", "--layers-per-group", "2", "--out", desk.profile(), "--json",
                         "--merge"});
    arguments.insert(arguments.end(), files.begin(), files.end());
    return run(arguments);
  };
  const Json one = Json::parse(merged({checkpoint}).output);
  CHECK(one["fingerprint"] == whole["fingerprint"]);
  CHECK(one["run"]["samples"] == 0);
  const Json two = Json::parse(merged({checkpoint, checkpoint}).output);
  CHECK(two["calibration_tokens"].get<int64_t>() == 2 * whole["calibration_tokens"].get<int64_t>());
  CHECK(two["calibration_samples"] == 8);
  std::ofstream(checkpoint, std::ios::app) << "x";
  CHECK(std::string(merged({checkpoint}).status.message()).find("FOLDKV_E_CORRUPT") != std::string::npos);
  CHECK(std::string(merged({desk.text()}).status.message()).find("no checkpoint") != std::string::npos);
}

TEST_CASE("samples that are held out are not calibrated on, and tell how far each plan is") {
  const Desk desk;
  const Json plain = Json::parse(desk.calibrate({"--sequences", "5", "--held-out", "0", "--plan", "4", "8", "--json"}));
  CHECK(plain["calibration_samples"] == 5);
  CHECK_FALSE(plain["plans"][0].contains("held_out_tokens"));
  const Json checked = Json::parse(desk.calibrate({"--sequences", "5", "--held-out", "2", "--plan", "4", "8", "--json"}));
  CHECK(checked["calibration_samples"] == 3);
  CHECK(checked["run"]["held_out"] == 2);
  for (const Json& plan : checked["plans"]) CHECK(plan["held_out_tokens"] == 2 * 64);
  CHECK(checked["plans"][1]["held_out_divergence"] > checked["plans"][0]["held_out_divergence"]);
  CHECK(checked["plans"][0]["held_out_divergence"] > 0.0);
  const std::string inspected = run_well({"inspect", desk.profile(), "--plan", "8x"});
  CHECK(inspected.find("on 128 tokens held out") != std::string::npos);
  CHECK(inspected.find("bands of plan 8x") != std::string::npos);
  CHECK(run_well({"inspect", desk.profile()}).find("bands of plan 4x") != std::string::npos);
  CHECK(Json::parse(run_well({"inspect", desk.profile(), "--plan", "8x", "--json"}))["bytes_per_token"] ==
        checked["plans"][1]["bytes_per_token"]);
  const auto stored = [&](const char* plan) {
    return Json::parse(run_well({"inspect", desk.profile(), "--plan", plan, "--json"}))["groups"][0]["keys"]["stored_width"]
        .get<int>();
  };
  CHECK(stored("8x") < stored("4x"));
  CHECK(std::string(run({"inspect", desk.profile(), "--plan", "9x"}).status.message()).find("4x, 8x") !=
        std::string::npos);
}

TEST_CASE("a profile from few rows says so") {
  const Desk desk;
  const std::string calibrated = run_well(desk.with_model({"calibrate", "--text", desk.text(), "--out", desk.profile(),
                                                           "--tokens-per-sample", "64", "--sequences", "1"}));
  CHECK(calibrated.find("made from few rows") != std::string::npos);
  CHECK(run_well({"inspect", desk.profile()}).find("made from few rows") != std::string::npos);
  CHECK(desk.calibrate({"--layers-per-group", "2"}).find("few rows") == std::string::npos);
}

TEST_CASE("what cannot end well does not begin") {
  const Desk desk;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part,
                           const char* tokens_per_sample = "256") {
    std::vector<std::string> arguments = desk.with_model({"calibrate", "--tokens-per-sample", tokens_per_sample});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    CHECK_FALSE(outcome.status.ok());
    CHECK_MESSAGE(std::string(outcome.status.message()).find(part) != std::string::npos, outcome.status.message());
    CHECK_FALSE(std::filesystem::exists(desk.profile()));
  };
  const std::string text = desk.text();
  const std::string out = desk.profile();
  refused({"--text", text, "--out", out, "--plan", "4", "4.0"}, "two plans are 4x");
  refused({"--text", text, "--out", out, "--plan", "4", "100000"}, "--plan: got 100000, expected 1 to ");
  refused({"--text", text, "--out", out, "--plan", "0.5"}, "--plan: got 0.5");
  refused({"--text", text, "--out", desk.file("no/where")}, "cannot write");
  refused({"--text", text, "--out", std::filesystem::path(text).parent_path().string()}, "is a folder");
  refused({"--text", text, "--out", out, "--checkpoint", desk.file("no/where")}, "cannot write");
  refused({"--text", text}, "--out is needed");
  refused({"--out", out}, "--text is needed");
  refused({"--text", text, "--out", out, "--sequences", "0"}, "nothing to calibrate on");
  refused({"--text", text, "--out", out, "--sequences", "2", "--held-out", "3"}, "--held-out 3 of 2");
  refused({"--text", text, "--out", out, "--sequences", "2", "--held-out", "2"}, "leaves no sample");
  refused({"--text", text, "--out", out, "--held-out", "1"}, "nothing is compressed", "64");
  refused({"--text", text, "--out", out, "--sequences", "1"}, "1 rows", "5");
  refused({"--text", text, "--out", out, "--bits", "77"}, "FOLDKV_E_ARGUMENT options.bits: got 77, expected 2 to 8");
  refused({"--text", text, "--out", out, "--correction-rank", "60000"}, "options.correction_rank: got 60000");
  for (const char* option : {"--bits", "--key-bands", "--value-bands"}) {
    CHECK_THROWS_AS((void)run(desk.with_model({"calibrate", "--text", text, "--out", out, "--plan", "4", option, "4"})),
                    CLI::ExcludesError);
  }
  CHECK_THROWS_AS((void)run(desk.with_model({"generate", "--prompt", "a", "--plan", ""})), CLI::ValidationError);
}

}  // namespace
}  // namespace foldkv_lab::test
