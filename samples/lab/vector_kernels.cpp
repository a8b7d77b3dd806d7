#include "samples/lab/vector_kernels.h"

#include <cstring>
#include <initializer_list>

namespace foldkv_lab {

namespace portable {
extern const VectorKernels kKernels;
}
#if FOLDKV_WITH_X86_KERNELS
namespace avx2 {
extern const VectorKernels kKernels;
}
namespace avx512 {
extern const VectorKernels kKernels;
}
#endif

const VectorKernels* find_vector_kernels(const char* instruction_set) {
#if FOLDKV_WITH_X86_KERNELS
  // Every processor with AVX2 has F16C; not every compiler lets one ask for it.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (std::strcmp(instruction_set, "avx512") == 0) return has_avx512 ? &avx512::kKernels : nullptr;
  if (std::strcmp(instruction_set, "avx2") == 0) return has_avx2 ? &avx2::kKernels : nullptr;
#endif
  return std::strcmp(instruction_set, "portable") == 0 ? &portable::kKernels : nullptr;
}

const VectorKernels& vector_kernels() {
  static const VectorKernels& best = []() -> const VectorKernels& {
    for (const char* instruction_set : {"avx512", "avx2"}) {
      if (const VectorKernels* kernels = find_vector_kernels(instruction_set)) return *kernels;
    }
    return *find_vector_kernels("portable");
  }();
  return best;
}

}  // namespace foldkv_lab
