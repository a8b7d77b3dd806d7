#pragma once

#include <chrono>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The rate of fused multiply-adds between registers alone, in GFLOP/s of f32: what a kernel can reach at most. To be
// measured in the same run as the kernel, since clocks change with the machine's load.
namespace foldkv::bench {

inline constexpr int kPeakChains = 20;  // hides the latency of any machine, fits the registers of AVX-512
inline constexpr int kPeakChainsOfFewRegisters = 10;
inline constexpr long kPeakRounds = 400'000;

#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) inline float run_avx512_chains() {
  __m512 sums[kPeakChains];
#pragma GCC unroll 32
  for (int i = 0; i < kPeakChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 factor = _mm512_set1_ps(0.999f);
  for (long round = 0; round < kPeakRounds; ++round) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 32
    for (int i = 0; i < kPeakChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, factor);
  }
  __m512 total = sums[0];
#pragma GCC unroll 32
  for (int i = 1; i < kPeakChains; ++i) total = _mm512_add_ps(total, sums[i]);
  return total[0];
}

__attribute__((target("avx2,fma"), noinline)) inline float run_avx2_chains() {
  __m256 sums[kPeakChainsOfFewRegisters];
#pragma GCC unroll 32
  for (int i = 0; i < kPeakChainsOfFewRegisters; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  __m256 factor = _mm256_set1_ps(0.999f);
  for (long round = 0; round < kPeakRounds; ++round) {
    asm volatile("" : "+x"(factor));
#pragma GCC unroll 32
    for (int i = 0; i < kPeakChainsOfFewRegisters; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, factor);
  }
  __m256 total = sums[0];
#pragma GCC unroll 32
  for (int i = 1; i < kPeakChainsOfFewRegisters; ++i) total = _mm256_add_ps(total, sums[i]);
  return total[0];
}
#endif

// 0 for an instruction set without fused multiply-adds.
inline double fma_peak(std::string_view instruction_set) {
#if defined(__x86_64__)
  const bool wide = instruction_set.substr(0, 6) == "avx512";
  if (!wide && instruction_set != "avx2") return 0.0;
  const auto start = std::chrono::steady_clock::now();
  volatile float kept = wide ? run_avx512_chains() : run_avx2_chains();
  static_cast<void>(kept);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double operations = wide ? 2.0 * 16 * kPeakChains : 2.0 * 8 * kPeakChainsOfFewRegisters;
  return operations * static_cast<double>(kPeakRounds) / seconds.count() * 1e-9;
#else
  static_cast<void>(instruction_set);
  return 0.0;
#endif
}

}  // namespace foldkv::bench
