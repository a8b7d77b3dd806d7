#pragma once

#include "samples/lab/command_arguments.h"

namespace foldkv_lab {

// Adds the subcommand "layers" to the program. When it is chosen, *command becomes what it runs.
void add_layers_command(CLI::App& program, Command* command);

}  // namespace foldkv_lab
