#include "tests/programs/program.h"

#include <algorithm>

#include "tests/support/split_mix.h"

namespace foldkv::test::programs {

Program read_program(std::span<const uint8_t> bytes) {
  Program program;
  const size_t head = std::min(bytes.size(), program.world.size());
  std::copy_n(bytes.begin(), head, program.world.begin());
  bytes = bytes.subspan(head);
  constexpr size_t kBytes = 6;
  for (; bytes.size() >= kBytes && program.operations.size() < kMostOperations; bytes = bytes.subspan(kBytes)) {
    program.operations.push_back({bytes[0], bytes[1], {bytes[2], bytes[3], bytes[4], bytes[5]}});
  }
  return program;
}

Program random_program(uint64_t seed) {
  SplitMix numbers(seed);
  const size_t operations = 10 + numbers.next() % 21;
  std::vector<uint8_t> bytes(Program().world.size() + operations * 6);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(numbers.next() >> 32);
  return read_program(bytes);
}

}  // namespace foldkv::test::programs
