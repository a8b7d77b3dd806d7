#pragma once

#include "tests/programs/machine.h"

namespace foldkv::test::programs {

// What went wrong, "" for nothing; text receives the program in words up to there.
[[nodiscard]] std::string failure_of(const Program& program, Tally& tally, std::string* text);

// The program without operations that it fails without as well.
[[nodiscard]] Program shrink(Program program);

}  // namespace foldkv::test::programs
