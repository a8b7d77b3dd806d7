#pragma once

#include "backends/interface/operations.h"

namespace foldkv::backend::reference {

void move_rows(const MoveRequest& request);

}  // namespace foldkv::backend::reference
