#include "backends/cpu/memory.h"

#include <algorithm>

#include "doctest/doctest.h"
#include "runtime/base/status.h"

namespace foldkv::backend::cpu {
namespace {

TEST_CASE("memory is zero at first and again once discarded; what is not discarded stays") {
  const int64_t page = system_page_bytes();
  CHECK(page > 0);
  const int64_t bytes = 5 * page;
  const auto reserved = reserve_system_memory(bytes);
  REQUIRE(reserved.ok());
  std::byte* memory = *reserved;
  const auto is = [&](int64_t first, int64_t end, std::byte value) {
    return std::all_of(memory + first, memory + end, [value](std::byte b) { return b == value; });
  };
  CHECK(is(0, bytes, std::byte{0}));
  std::fill_n(memory, bytes, std::byte{7});
  discard_system_memory(memory + page, 2 * page);
  CHECK(is(0, page, std::byte{7}));
  CHECK(is(page, 3 * page, std::byte{0}));
  CHECK(is(3 * page, bytes, std::byte{7}));
  discard_system_memory(memory, 0);
  release_system_memory(memory, bytes);
}

TEST_CASE("what cannot be reserved is an error with the size") {
  CHECK(argument_of(reserve_system_memory(0).status()) == "bytes");
  const auto too_much = reserve_system_memory(int64_t{1} << 62);
  REQUIRE_FALSE(too_much.ok());
  CHECK(too_much.status().message().find("4611686018427387904") != absl::string_view::npos);
}

TEST_CASE("address space far beyond the machine's memory can be reserved") {
  const int64_t bytes = int64_t{1} << 40;
  const auto reserved = reserve_system_memory(bytes);
  REQUIRE(reserved.ok());
  (*reserved)[bytes - 1] = std::byte{1};
  release_system_memory(*reserved, bytes);
}

}  // namespace
}  // namespace foldkv::backend::cpu
