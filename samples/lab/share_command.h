#pragma once

#include "samples/lab/command_arguments.h"

namespace foldkv_lab {

// foldkv-lab share
void add_share_command(CLI::App& program, Command* command);

}  // namespace foldkv_lab
