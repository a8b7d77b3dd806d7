#pragma once

#include "samples/lab/command_arguments.h"

namespace foldkv_lab {

// Adds the subcommand "plan" to the program. When it is chosen, *command becomes what it runs.
void add_plan_command(CLI::App& program, Command* command);

}  // namespace foldkv_lab
