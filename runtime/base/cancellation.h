#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace foldkv {

// A flag of the host that ends a long call. Read at places where the call can end with nothing changed.
class Cancellation {
 public:
  explicit Cancellation(const int32_t* flag = nullptr) : flag_(flag) {}

  [[nodiscard]] Status check() const {
    // The host may set it from another thread at any time.
    return flag_ != nullptr && __atomic_load_n(flag_, __ATOMIC_RELAXED) != 0 ? cancelled_error() : absl::OkStatus();
  }

 private:
  const int32_t* flag_;
};

}  // namespace foldkv
