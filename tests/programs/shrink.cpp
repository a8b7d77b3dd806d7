#include "tests/programs/shrink.h"

#include "absl/strings/str_join.h"
#include "tests/programs/mismatch.h"

namespace foldkv::test::programs {

std::string failure_of(const Program& program, Tally& tally, std::string* text) {
  Machine machine(program, tally);
  std::string failure;
  try {
    machine.run();
  } catch (const std::exception& exception) {
    failure = exception.what();
  }
  if (text != nullptr) *text = absl::StrJoin(machine.text(), "\n");
  return failure;
}

Program shrink(Program program) {
  // Enough for nearly all; a failure must not be waited for.
  constexpr int kMostTries = 60;
  Tally tally;
  int tries = 0;
  for (bool smaller = true; smaller && tries < kMostTries;) {
    smaller = false;
    for (size_t index = program.operations.size(); index-- > 0 && ++tries < kMostTries;) {
      Program less = program;
      less.operations.erase(less.operations.begin() + static_cast<std::ptrdiff_t>(index));
      if (failure_of(less, tally, nullptr).empty()) continue;
      program = std::move(less);
      smaller = true;
    }
  }
  return program;
}

}  // namespace foldkv::test::programs
