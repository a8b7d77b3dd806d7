#include "samples/lab/profile_report.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "nlohmann/json.hpp"
#include "samples/lab/calibrate.h"
#include "samples/lab/profile_file.h"
#include "tests/samples/lab/small_models.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("a profile is reported, saved and loaded") {
  const Model model = random_model(small_shape("llama"), 11, 0);
  ThreadPool threads(1);
  FoldkvHostOptions host_options;
  host_options.budget_bytes = uint64_t{64} << 20;
  const auto host = FoldkvHost::create(model, "small llama", host_options, threads);
  REQUIRE_MESSAGE(host.ok(), host.status().message());
  foldkv::test::Random random(12);
  std::vector<TextSample> samples(2);
  for (TextSample& sample : samples) {
    for (int i = 0; i < 100; ++i) sample.tokens.push_back(static_cast<Token>(random.between(0, 261)));
  }
  CalibrationOptions calibration;
  calibration.calibrator.layers_per_group = 2;
  const auto profile = calibrate(**host, samples, calibration, [](int64_t) {});
  REQUIRE_MESSAGE(profile.ok(), profile.status().message());

  const auto report = report_profile(*profile);
  REQUIRE_MESSAGE(report.ok(), report.status().message());
  CHECK((*report)["model_name"] == "small llama");
  CHECK((*report)["calibration_samples"] == 2);
  CHECK((*report)["calibration_tokens"] == 2 * (100 - 4));
  REQUIRE((*report)["groups"].size() == 2);
  const nlohmann::json& first = (*report)["groups"][0];
  CHECK(first["layers"] == std::vector<int>{0, 1});
  CHECK(first["keys"]["bands"] == nlohmann::json::parse(R"([{"width": 16, "bits": 4, "code": "uniform"}])"));
  CHECK(first["full_bytes_per_token"] == 2 * 2 * 16 * 2);
  const double kept = first["keys"]["energy_kept"];
  CHECK(kept > 0.4);
  CHECK(kept < 1.0);
  // One layer alone is of full rank.
  CHECK((*report)["groups"][1]["values"]["energy_kept"].get<double>() == doctest::Approx(1.0));
  CHECK(profile_summary(*report).find("3 layers in 2 groups") != std::string::npos);
  CHECK(profile_table(*report).find("0-1") != std::string::npos);

  const foldkv::test::TemporaryFolder folder;
  const std::string path = (folder.path() / "small.profile").string();
  const auto bytes = save_profile(*profile, path);
  REQUIRE_MESSAGE(bytes.ok(), bytes.status().message());
  CHECK(static_cast<int64_t>(foldkv::test::read_bytes(path).size()) == *bytes);
  const auto loaded = load_profile(path);
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  CHECK(*report_profile(*loaded) == *report);

  std::ofstream(path, std::ios::app) << "x";
  CHECK_FALSE(load_profile(path).ok());
  CHECK_FALSE(load_profile((folder.path() / "absent").string()).ok());
  CHECK_FALSE(save_profile(*profile, (folder.path() / "no" / "folder").string()).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
