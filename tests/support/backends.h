#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/interface/plugin.h"
#include "backends/reference/reference_backend.h"
#if defined(FOLDKV_CPU)
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernels.h"
#endif

// The backends that tests run on: the reference, and the cpu backend with every instruction set of this machine.
namespace foldkv::test {

struct BackendChoice {
  std::string name;
  const backend::Plugin* plugin = nullptr;
  std::string instruction_set;
};

[[nodiscard]] inline std::unique_ptr<backend::Backend> open_backend(const BackendChoice& choice, int32_t threads,
                                                                    bool deterministic = false) {
  backend::DeviceOptions options;
  options.threads = threads;
  options.deterministic = deterministic;
  options.instruction_set = choice.instruction_set;
  auto opened = choice.plugin->open(options);
  if (!opened.ok()) throw std::runtime_error(choice.name + ": " + opened.status().ToString());
  return std::move(opened).value();
}

[[nodiscard]] inline BackendChoice reference_choice() { return {"reference", &backend::reference_plugin(), ""}; }

// All but the reference. A set that the machine has must open.
[[nodiscard]] inline std::vector<BackendChoice> tested_choices() {
  std::vector<BackendChoice> choices;
#if defined(FOLDKV_CPU)
  choices.push_back({"cpu portable", &backend::cpu_plugin(), "portable"});
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    choices.push_back({"cpu avx2", &backend::cpu_plugin(), "avx2"});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    choices.push_back({"cpu avx512", &backend::cpu_plugin(), "avx512"});
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512bf16")) {
      choices.push_back({"cpu avx512vnni", &backend::cpu_plugin(), "avx512vnni"});
      // Whether the system lets a process use tiles the library has to ask.
      if (backend::cpu::find_kernels("avx512amx") != nullptr) {
        choices.push_back({"cpu avx512amx", &backend::cpu_plugin(), "avx512amx"});
      }
    }
  }
#endif
#endif
  return choices;
}

[[nodiscard]] inline std::vector<BackendChoice> all_choices() {
  std::vector<BackendChoice> choices = tested_choices();
  choices.insert(choices.begin(), reference_choice());
  return choices;
}

}  // namespace foldkv::test
