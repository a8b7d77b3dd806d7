#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "doctest/doctest.h"
#include "tests/samples/lab/stories.h"
#include "tests/support/data.h"

// The commands of the lab as a user types them.
namespace foldkv_lab::test {

struct Outcome {
  absl::Status status;
  std::string output;
};

// Throws what CLI11 throws for arguments that it refuses.
[[nodiscard]] Outcome run(const std::vector<std::string>& arguments);

[[nodiscard]] inline std::string run_well(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  REQUIRE_MESSAGE(outcome.status.ok(), outcome.status.message());
  return outcome.output;
}

// A folder with a text for the model of tiny stories.
class Desk {
 public:
  Desk() {
    std::ofstream file(text());
    for (int i = 0; i < 40; ++i)
      file << kStoriesText << ". There were " << i << " of them and Tom saw " << 7 * i << ". ";
  }
  [[nodiscard]] std::string text() const { return file("text"); }
  [[nodiscard]] std::string profile() const { return file("profile"); }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] std::vector<std::string> with_model(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1,
                     {"--model", foldkv::test::data_path("stories260K/stories260K.bin").string(), "--threads", "1"});
    return arguments;
  }
  std::string calibrate(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments =
        with_model({"calibrate", "--text", text(), "--out", profile(), "--tokens-per-sample", "256"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_well(arguments);
  }

 private:
  foldkv::test::TemporaryFolder folder_;
};

}  // namespace foldkv_lab::test
