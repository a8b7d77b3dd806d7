#include "tests/samples/lab/command_desk.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "samples/lab/calibrate_command.h"
#include "samples/lab/evaluate_command.h"
#include "samples/lab/generate_command.h"
#include "samples/lab/inspect_command.h"
#include "samples/lab/layers_command.h"
#include "samples/lab/plan_command.h"
#include "samples/lab/sensitivity_command.h"
#include "samples/lab/share_command.h"

namespace foldkv_lab::test {
namespace {

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

}  // namespace

Outcome run(const std::vector<std::string>& arguments) {
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

}  // namespace foldkv_lab::test
