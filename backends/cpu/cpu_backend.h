#pragma once

#include "backends/interface/plugin.h"

namespace foldkv::backend {

// The host's processor: SIMD kernels chosen at run time, oneDNN for dense products when built with it.
// DeviceOptions::instruction_set: "avx512amx", "avx512vnni", "avx512", "avx2", "portable", or "" for the best of this
// machine.
[[nodiscard]] const Plugin& cpu_plugin();

}  // namespace foldkv::backend
