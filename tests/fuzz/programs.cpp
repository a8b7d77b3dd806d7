// Bytes as a program of calls of the C API, beside a reference that forgets nothing (tests/programs).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/oracle.h"
#include "tests/programs/shrink.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foldkv::test::programs;
  const Program program = read_program({data, size});
  Tally tally;
  std::string text;
  const std::string failure = failure_of(program, tally, &text);
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), failure.c_str());
    std::abort();
  }
  ++foldkv::fuzz::accepted;
  return 0;
}
