// foldkv-lab: runs a real language model through FoldKV and through a plain full cache, and measures the difference.

#include <exception>
#include <iostream>

#include "CLI/CLI.hpp"
#include "foldkv/foldkv.h"
#include "samples/lab/calibrate_command.h"
#include "samples/lab/evaluate_command.h"
#include "samples/lab/generate_command.h"
#include "samples/lab/inspect_command.h"
#include "samples/lab/layers_command.h"
#include "samples/lab/plan_command.h"
#include "samples/lab/sensitivity_command.h"
#include "samples/lab/share_command.h"

int main(int argc, char** argv) {
  CLI::App program("Runs a language model with a compressed KV cache, next to the same model with a full one.",
                   "foldkv-lab");
  program.set_version_flag("--version", foldkv_build_info());
  program.require_subcommand(1);
  foldkv_lab::Command command;
  foldkv_lab::add_calibrate_command(program, &command);
  foldkv_lab::add_inspect_command(program, &command);
  foldkv_lab::add_generate_command(program, &command);
  foldkv_lab::add_evaluate_command(program, &command);
  foldkv_lab::add_share_command(program, &command);
  foldkv_lab::add_sensitivity_command(program, &command);
  foldkv_lab::add_layers_command(program, &command);
  foldkv_lab::add_plan_command(program, &command);
  CLI11_PARSE(program, argc, argv);
  try {
    const absl::Status status = command();
    if (status.ok()) return 0;
    std::cerr << "foldkv-lab: " << status.message() << "\n";
  } catch (const std::exception& exception) {  // out of memory, for example
    std::cerr << "foldkv-lab: " << exception.what() << "\n";
  }
  return 1;
}
