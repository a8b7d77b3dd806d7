#pragma once

#include <memory>

#include "foldkv/foldkv.h"

// Handles of the C API that are released when they go out of scope, and structs of it with their size set.
namespace foldkv::test {

struct Release {
  void operator()(foldkv_runtime* handle) const { foldkv_runtime_release(handle); }
  void operator()(foldkv_model* handle) const { foldkv_model_release(handle); }
  void operator()(foldkv_profile* handle) const { foldkv_profile_release(handle); }
  void operator()(foldkv_calibrator* handle) const { foldkv_calibrator_release(handle); }
  void operator()(foldkv_sensitivity* handle) const { foldkv_sensitivity_release(handle); }
  void operator()(foldkv_sequence* handle) const { foldkv_sequence_release(handle); }
  void operator()(foldkv_step* handle) const { foldkv_step_release(handle); }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Release>;

template <typename Struct>
[[nodiscard]] Struct sized() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

}  // namespace foldkv::test
