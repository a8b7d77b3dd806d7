#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {
namespace {

bool all_zero(const std::byte* memory, int64_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::byte b) { return b == kZero; });
}

// Whether the system holds physical memory for any of a range of whole pages. Elsewhere than on Linux nobody knows.
bool resident(std::byte* memory, int64_t bytes, [[maybe_unused]] bool otherwise) {
#if defined(__linux__)
  std::vector<unsigned char> pages(static_cast<size_t>(bytes), 0);  // more than one for each page
  if (mincore(memory, static_cast<size_t>(bytes), pages.data()) != 0) return false;
  return std::any_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
#else
  static_cast<void>(memory);
  static_cast<void>(bytes);
  return otherwise;
#endif
}

// Zero at first, resident only where touched and not given back, and kept beside what was given back.
Outcome reserve_and_discard(backend::Backend& backend, std::byte fill) {
  const int64_t granularity = backend.memory_granularity();
  const int64_t bytes = 8 * granularity;
  Outcome outcome;
  outcome.expect(granularity > 0, "memory granularity is not above 0");
  const auto reserved = backend.reserve_memory(bytes);
  outcome.set_status(reserved.status());
  if (!reserved.ok()) return outcome;
  std::byte* const memory = *reserved;
  outcome.expect(reinterpret_cast<uintptr_t>(memory) % 64 == 0, "not aligned to 64 bytes");
  outcome.expect(!resident(memory, bytes, false), "resident before it was touched");
  outcome.expect(all_zero(memory, bytes), "not zero when reserved");
  const std::byte mark = fill ^ std::byte{0x3c};
  std::fill_n(memory, bytes, mark);
  outcome.expect(resident(memory + 2 * granularity, granularity, true), "not resident after it was written");
  backend.discard_memory(memory + 2 * granularity, 3 * granularity);
  outcome.expect(!resident(memory + 2 * granularity, 3 * granularity, false), "resident after it was given back");
  outcome.expect(std::all_of(memory, memory + 2 * granularity, [=](std::byte b) { return b == mark; }),
                 "contents lost before the discarded range");
  outcome.expect(std::all_of(memory + 5 * granularity, memory + bytes, [=](std::byte b) { return b == mark; }),
                 "contents lost after the discarded range");
  std::memset(memory + 2 * granularity, 0x11, static_cast<size_t>(3 * granularity));
  outcome.expect(memory[3 * granularity] == std::byte{0x11}, "discarded memory does not take new contents");
  backend.release_memory(memory, bytes);
  return outcome;
}

// Far more than a machine has: it may only be refused or be given without being touched.
Outcome reserve_much(backend::Backend& backend, std::byte /*fill*/) {
  Outcome outcome;
  constexpr int64_t kBytes = int64_t{1} << 38;
  const auto reserved = backend.reserve_memory(kBytes);
  if (reserved.ok()) {
    outcome.expect((*reserved)[kBytes - 1] == kZero, "not zero at its end");
    backend.release_memory(*reserved, kBytes);
  } else {
    outcome.expect(absl::IsUnavailable(reserved.status()), "refused with another error than memory");
  }
  return outcome;
}

Outcome reserve_wrong(backend::Backend& backend, int64_t bytes) {
  Outcome outcome;
  outcome.expect(!backend.reserve_memory(bytes).ok(), "reserved a size that is none");
  return outcome;
}

Outcome copy(backend::Backend& backend, std::byte fill) {
  constexpr int64_t kBytes = 1000;
  Random random(17);
  const MemoryBlock source(kBytes, fill);
  const MemoryBlock device(kBytes, fill);
  const MemoryBlock target(kBytes, fill);
  for (int64_t i = 0; i < kBytes; ++i) source.data()[i] = static_cast<std::byte>(random.between(0, 255));
  Outcome outcome;
  outcome.set_status(backend.copy_to_device(device.data() + 3, source.data() + 1, kBytes - 4));
  if (outcome.code == absl::StatusCode::kOk) {
    outcome.set_status(backend.copy_to_host(target.data() + 2, device.data() + 3, kBytes - 4));
  }
  outcome.expect(std::equal(source.data() + 1, source.data() + kBytes - 3, target.data() + 2), "another content");
  outcome.expect(target.data()[1] == fill && target.data()[kBytes - 2] == fill && device.data()[2] == fill,
                 "copied more than asked");
  return outcome;
}

}  // namespace

OperationRows memory_rows() {
  OperationRows table{Operation::kMemory, {}, nullptr};
  table.rows.push_back({"reserve, discard, release", reserve_and_discard});
  table.rows.push_back({"256 GiB", reserve_much});
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}}) {
    table.rows.push_back({absl::StrCat(bytes, " bytes"),
                          [bytes](backend::Backend& backend, std::byte) { return reserve_wrong(backend, bytes); }});
  }
  return table;
}

OperationRows copy_rows() { return {Operation::kCopy, {{"there and back", copy}}, nullptr}; }

}  // namespace foldkv::test
