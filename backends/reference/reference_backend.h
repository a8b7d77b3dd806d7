#pragma once

#include "backends/interface/plugin.h"

namespace foldkv::backend {

// The oracle: plain scalar code on one thread, double precision inside, every operation written as its definition
// reads. Every other backend is tested against it.
const Plugin& reference_plugin();

}  // namespace foldkv::backend
