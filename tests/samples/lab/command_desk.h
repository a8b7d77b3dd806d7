#pragma once

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"
#include "samples/lab/calibrate_command.h"
#include "samples/lab/evaluate_command.h"
#include "samples/lab/generate_command.h"
#include "samples/lab/inspect_command.h"
#include "samples/lab/layers_command.h"
#include "samples/lab/plan_command.h"
#include "samples/lab/sensitivity_command.h"
#include "samples/lab/share_command.h"
#include "tests/samples/lab/stories.h"
#include "tests/support/data.h"

// The commands of the lab as a user types them.
namespace foldkv_lab::test {

// What goes to the standard output while this object lives.
class CapturedOutput {
 public:
  CapturedOutput() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~CapturedOutput() { std::cout.rdbuf(before_); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

struct Outcome {
  absl::Status status;
  std::string output;
};

[[nodiscard]] inline Outcome run(std::vector<std::string> arguments) {
  CLI::App program("test", "foldkv-lab");
  Command command;
  add_calibrate_command(program, &command);
  add_inspect_command(program, &command);
  add_generate_command(program, &command);
  add_evaluate_command(program, &command);
  add_share_command(program, &command);
  add_sensitivity_command(program, &command);
  add_layers_command(program, &command);
  add_plan_command(program, &command);
  std::vector<const char*> pointers = {"foldkv-lab"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  program.parse(static_cast<int>(pointers.size()), pointers.data());
  const CapturedOutput captured;
  Outcome outcome;
  outcome.status = command();
  outcome.output = captured.text();
  return outcome;
}

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
