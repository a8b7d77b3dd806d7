#pragma once

#include <stdexcept>

#include "backends/interface/backend.h"
#include "tests/support/memory_block.h"

namespace foldkv::test {

// A rotation with what the backend wants prepared for it.
class PreparedRotation {
 public:
  PreparedRotation(backend::Backend& backend, const backend::Rotation& rotation)
      : rotation_(rotation), memory_(backend.rotation_bytes(rotation), kPoison) {
    const Status status = backend.prepare_rotation(rotation_, memory_.data());
    if (!status.ok()) throw std::runtime_error(status.ToString());
    rotation_.prepared = memory_.data();
  }

  [[nodiscard]] const backend::Rotation& get() const { return rotation_; }
  [[nodiscard]] bool canary_alive() const { return memory_.canary_alive(); }

 private:
  backend::Rotation rotation_;
  MemoryBlock memory_;
};

}  // namespace foldkv::test
