#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/backends/conformance/recording_backend.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {

// One backend with one instruction set, on one thread, on three of its own, and on a host's parallel_for, which runs
// tasks from the last to the first.
struct Subject {
  std::string name;
  std::unique_ptr<RecordingBackend> one_thread;
  std::unique_ptr<RecordingBackend> three_threads;
  std::unique_ptr<RecordingBackend> host_threads;
};

// The reference first.
[[nodiscard]] const std::vector<Subject>& subjects();

// Runs a row on every subject. Each must do what the reference does; and the same to the last bit whatever lies in
// unused memory, and on any threads.
void check_row(Operation operation, const Row& row);

}  // namespace foldkv::test
