#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/interface/backend.h"

namespace foldkv::backend {

// What the runtime asks of a backend when it opens a device.
struct DeviceOptions {
  int32_t device = 0;
  int32_t threads = 0;          // 0: one for each core
  bool deterministic = false;
  std::string instruction_set;  // "": the best
  void (*parallel_for)(void* context, int32_t count, void (*task)(void*, int32_t), void* task_context) = nullptr;
  void* parallel_for_context = nullptr;
};

// The entry of a backend, built in or loaded. Size and version come first so that a mismatch is seen before
// anything else is read; the version is that of the exact library build while the interface is young.
struct Plugin {
  uint32_t size = sizeof(Plugin);
  uint32_t version = kPluginVersion;
  const char* name = "";
  const char* description = "";
  int32_t (*device_count)() = nullptr;
  const char* (*instruction_set)() = nullptr;  // the best of this machine
  StatusOr<std::unique_ptr<Backend>> (*open)(const DeviceOptions& options) = nullptr;

  static constexpr uint32_t kPluginVersion = 1;
};

}  // namespace foldkv::backend
