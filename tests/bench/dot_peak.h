#pragma once

#include <chrono>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The rate of products of bytes between vector registers alone, in GOP/s: what a rebuild in integers can reach at most. To be
// measured in the same run as the kernel.
namespace foldkv::bench {

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vnni"), noinline)) inline int run_dot_chains(long rounds) {
  constexpr int kChains = 20;
  __m512i sums[kChains];
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);
  __m512i bytes = _mm512_set1_epi8(3);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) asm("vpdpbusd %1, %1, %0" : "+v"(sums[i]) : "v"(bytes));
  }
  __m512i total = sums[0];
#pragma GCC unroll 32
  for (int i = 1; i < kChains; ++i) total = _mm512_add_epi32(total, sums[i]);
  return _mm512_cvtsi512_si32(total);
}
#endif

// 0 for an instruction set that has no such products.
inline double dot_peak(std::string_view instruction_set) {
#if defined(__x86_64__)
  if (instruction_set != "avx512vnni" && instruction_set != "avx512amx") return 0.0;
  constexpr long kRounds = 400'000;
  const auto start = std::chrono::steady_clock::now();
  volatile int kept = run_dot_chains(kRounds);
  static_cast<void>(kept);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return 2.0 * 64 * 20 * static_cast<double>(kRounds) / seconds.count() * 1e-9;
#else
  static_cast<void>(instruction_set);
  return 0.0;
#endif
}

}  // namespace foldkv::bench
