#pragma once

#include <cstdint>
#include <memory>

#include "backends/interface/plugin.h"

namespace foldkv::test {

// A backend that passes every call on to another one, and lets the call fail where a fault plan says so.
// cancel: set to 1 where a plan of kind kCancel strikes; outlives the backend.
[[nodiscard]] std::unique_ptr<backend::Backend> make_faulty(std::unique_ptr<backend::Backend> inner, int32_t* cancel);

}  // namespace foldkv::test
