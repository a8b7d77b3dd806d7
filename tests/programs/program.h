#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

// Programs of calls of the C API. A program is a string of bytes, so that a seed, a fuzzer and a shrinker make them
// alike: any bytes are a program, since every number is taken modulo what there is to choose from.
namespace foldkv::test::programs {

struct Operation {
  uint8_t verb = 0;
  uint8_t which = 0;  // among the sequences that live
  std::array<uint8_t, 4> choices{};
};

struct Program {
  std::array<uint8_t, 6> world{};  // backend, threads, model, budget ...
  std::vector<Operation> operations;
};

inline constexpr size_t kMostOperations = 48;

// Bytes that are too few for another operation are left out; so is what follows kMostOperations.
[[nodiscard]] Program read_program(std::span<const uint8_t> bytes);
// 10 to 30 operations.
[[nodiscard]] Program random_program(uint64_t seed);

}  // namespace foldkv::test::programs
