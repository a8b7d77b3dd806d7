#include "runtime/memory/arena.h"

#include <cstring>
#include <random>
#include <vector>

#include "backends/reference/reference_backend.h"
#include "doctest/doctest.h"

namespace foldkv {
namespace {

std::shared_ptr<backend::Backend> open_backend() {
  auto opened = backend::reference_plugin().open({});
  REQUIRE(opened.ok());
  return std::move(*opened);
}

std::unique_ptr<Arena> make_arena(int64_t budget) {
  auto arena = Arena::create(open_backend(), budget);
  REQUIRE(arena.ok());
  return std::move(*arena);
}

TEST_CASE("a budget below one block is refused") {
  for (int64_t budget : {int64_t{-5}, int64_t{0}, int64_t{63}}) {
    const auto arena = Arena::create(open_backend(), budget);
    REQUIRE_FALSE(arena.ok());
    CHECK(argument_of(arena.status()) == "budget_bytes");
  }
}

TEST_CASE("the budget is hard to the byte and a refusal changes nothing") {
  const auto arena = make_arena(1024);
  const auto first = arena->allocate(Role::kExact, 512);
  REQUIRE(first.ok());
  const auto second = arena->allocate(Role::kLatent, 512);
  REQUIRE(second.ok());
  CHECK(arena->stats().ledger.total() == 1024);
  const auto third = arena->allocate(Role::kExact, 1);
  REQUIRE_FALSE(third.ok());
  CHECK(third.status().code() == absl::StatusCode::kResourceExhausted);
  CHECK(arena->stats().ledger.total() == 1024);
  CHECK(arena->stats().largest_free == 0);
  arena->release(Role::kExact, *first, 512);
  CHECK(arena->stats().ledger.of(Role::kExact) == 0);
  CHECK(arena->stats().ledger.of(Role::kLatent) == 512);
  CHECK(arena->allocate(Role::kScratch, 512).ok());
}

TEST_CASE("pages grow from the bottom, scratch from the top, and neighbours merge") {
  const auto arena = make_arena(4096);
  std::byte* page = *arena->allocate(Role::kExact, 100);
  std::byte* scratch = *arena->allocate(Role::kScratch, 100);
  CHECK(scratch - page == 4096 - 128);
  arena->release(Role::kExact, page, 100);
  arena->release(Role::kScratch, scratch, 100);
  CHECK(arena->stats().largest_free == 4096);
}

TEST_CASE("blocks never overlap and every byte comes back, whatever the order") {
  const auto arena = make_arena(1 << 20);
  std::mt19937 random(7);
  struct Held {
    Role role;
    std::byte* data;
    int64_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int round = 0; round < 4000; ++round) {
    if (held.empty() || random() % 5 < 3) {
      const auto role = static_cast<Role>(random() % kRoleCount);
      const int64_t bytes = 1 + random() % 5000;
      const auto block = arena->allocate(role, bytes);
      if (!block.ok()) continue;
      const auto mark = static_cast<unsigned char>(random());
      std::memset(*block, mark, static_cast<size_t>(bytes));
      held.push_back({role, *block, bytes, mark});
      continue;
    }
    const size_t index = random() % held.size();
    const Held block = held[index];
    bool intact = true;
    for (int64_t i = 0; i < block.bytes; ++i) {
      intact = intact && block.data[i] == static_cast<std::byte>(block.mark);
    }
    CHECK(intact);
    arena->release(block.role, block.data, block.bytes);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
  }
  int64_t expected = 0;
  for (const Held& block : held) expected += block_bytes(block.bytes);
  CHECK(arena->stats().ledger.total() == expected);
  for (const Held& block : held) arena->release(block.role, block.data, block.bytes);
  CHECK(arena->stats().ledger.total() == 0);
  CHECK(arena->stats().largest_free == 1 << 20);
}

TEST_CASE("free memory is given back to the system and comes back usable") {
  const auto arena = make_arena(64 << 20);
  const int64_t bytes = 32 << 20;
  std::byte* block = *arena->allocate(Role::kExact, bytes);
  std::memset(block, 1, static_cast<size_t>(bytes));
  CHECK(arena->stats().resident >= bytes);
  arena->give_back();
  CHECK(arena->stats().resident >= bytes);
  arena->release(Role::kExact, block, bytes);
  arena->give_back();
  CHECK(arena->stats().resident <= 1 << 20);
  block = *arena->allocate(Role::kExact, bytes);
  std::memset(block, 2, static_cast<size_t>(bytes));
  CHECK(block[bytes - 1] == std::byte{2});
  CHECK(arena->stats().peak == bytes);
  arena->release(Role::kExact, block, bytes);
}

TEST_CASE("a budget that does not end on a granule keeps its limit") {
  const auto arena = make_arena(5000);
  CHECK(arena->stats().budget == 4992);
  const auto block = arena->allocate(Role::kExact, 4992);
  REQUIRE(block.ok());
  std::memset(*block, 3, 4992);
  CHECK_FALSE(arena->allocate(Role::kExact, 1).ok());
  arena->release(Role::kExact, *block, 4992);
  arena->give_back();
}

}  // namespace
}  // namespace foldkv
