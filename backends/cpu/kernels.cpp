#include "backends/cpu/kernels.h"

#include <string_view>

#if FOLDKV_WITH_X86_KERNELS
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
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
namespace avx512amx {
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
// The system gives a process the state of tiles when it asks for it.
bool ask_for_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
bool has_avx512amx() {
  constexpr unsigned int kTiles = 1u << 24;
  constexpr unsigned int kByteProducts = 1u << 25;
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return has_avx512vnni() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kTiles) != 0 &&
         (edx & kByteProducts) != 0 && ask_for_tiles();
}
#endif

}  // namespace

const Kernels* find_kernels(const char* name) {
  const std::string_view wanted = name;
  const bool best = wanted.empty() || wanted == "best";
#if FOLDKV_WITH_X86_KERNELS
  if ((best || wanted == "avx512amx") && has_avx512amx()) return &avx512amx::kKernels;
  if ((best || wanted == "avx512vnni") && has_avx512vnni()) return &avx512vnni::kKernels;
  if ((best || wanted == "avx512") && has_avx512()) return &avx512::kKernels;
  if ((best || wanted == "avx2") && has_avx2()) return &avx2::kKernels;
#endif
  return best || wanted == "portable" ? &portable::kKernels : nullptr;
}

const char* available_kernels() {
#if FOLDKV_WITH_X86_KERNELS
  if (has_avx512amx()) return "avx512amx, avx512vnni, avx512, avx2, portable";
  if (has_avx512vnni()) return "avx512vnni, avx512, avx2, portable";
  if (has_avx512()) return "avx512, avx2, portable";
  if (has_avx2()) return "avx2, portable";
#endif
  return "portable";
}

}  // namespace foldkv::backend::cpu
