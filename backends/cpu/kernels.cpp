#include "backends/cpu/kernels.h"

#include <string_view>

#if FOLDKV_WITH_X86_KERNELS
#include <cpuid.h>
#endif

namespace foldkv::backend::cpu {

namespace portable {
extern const Kernels kKernels;
}
#if FOLDKV_WITH_X86_KERNELS
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace avx512vnni {
extern const Kernels kKernels;
}
#endif

namespace {

#if FOLDKV_WITH_X86_KERNELS
// clang 14 does not know F16C by name.
bool has_f16c() {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx512vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512bf16");
}
#endif

}  // namespace

const Kernels* find_kernels(const char* name) {
  const std::string_view wanted = name;
  const bool best = wanted.empty() || wanted == "best";
#if FOLDKV_WITH_X86_KERNELS
  if ((best || wanted == "avx512vnni") && has_avx512vnni()) return &avx512vnni::kKernels;
  if ((best || wanted == "avx512") && has_avx512()) return &avx512::kKernels;
  if ((best || wanted == "avx2") && has_avx2()) return &avx2::kKernels;
#endif
  return best || wanted == "portable" ? &portable::kKernels : nullptr;
}

const char* available_kernels() {
#if FOLDKV_WITH_X86_KERNELS
  if (has_avx512vnni()) return "avx512vnni, avx512, avx2, portable";
  if (has_avx512()) return "avx512, avx2, portable";
  if (has_avx2()) return "avx2, portable";
#endif
  return "portable";
}

}  // namespace foldkv::backend::cpu
