#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/kernels.h"
#include "doctest/doctest.h"
#include "tests/support/backends.h"

namespace foldkv::test {

// Runs a check with the kernels of every instruction set of this machine.
inline void for_each_kernel_set(const std::function<void(const backend::cpu::Kernels&)>& check) {
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.instruction_set);
    const backend::cpu::Kernels* kernels = backend::cpu::find_kernels(choice.instruction_set.c_str());
    REQUIRE(kernels != nullptr);
    check(*kernels);
  }
}

}  // namespace foldkv::test
