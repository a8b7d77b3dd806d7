#pragma once

#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"

namespace foldkv::test::programs {

// The library did something else than the reference.
class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
void expect(bool condition, const Parts&... parts) {
  if (!condition) throw Mismatch(absl::StrCat(parts...));
}

}  // namespace foldkv::test::programs
