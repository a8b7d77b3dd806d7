#include "runtime/memory/page_list.h"

#include "backends/reference/reference_backend.h"
#include "doctest/doctest.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/block.h"
#include "runtime/memory/counting_allocator.h"

namespace foldkv {
namespace {

TEST_CASE("pages follow the number of tokens") {
  CountingAllocator allocator;
  PageList pages(Role::kLatent, 32, 1000);
  REQUIRE(pages.grow(allocator, 1).ok());
  CHECK(pages.page_count() == 1);
  REQUIRE(pages.grow(allocator, 32).ok());
  CHECK(pages.page_count() == 1);
  REQUIRE(pages.grow(allocator, 33).ok());
  CHECK(pages.page_count() == 2);
  CHECK(pages.bytes() == 2 * 1024);
  CHECK(allocator.ledger().of(Role::kLatent) == pages.bytes());
  pages.shrink(allocator, 32);
  CHECK(pages.page_count() == 1);
  pages.shrink(allocator, 0);
  CHECK(allocator.ledger().total() == 0);
  CHECK(allocator.peak() == 2 * 1024);
}

TEST_CASE("a growth that does not fit leaves the list as it was") {
  auto backend = backend::reference_plugin().open({});
  REQUIRE(backend.ok());
  auto arena = Arena::create(std::move(*backend), 3 * 1024);
  REQUIRE(arena.ok());
  PageList pages(Role::kExact, 4, 1024);
  REQUIRE(pages.grow(**arena, 8).ok());
  const Status status = pages.grow(**arena, 16);
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(pages.page_count() == 2);
  CHECK((*arena)->stats().ledger.total() == 2 * 1024);
  pages.shrink(**arena, 0);
}

TEST_CASE("lists that share pages get copies of those that are written, and the originals back when they are not") {
  auto backend = backend::reference_plugin().open({});
  REQUIRE(backend.ok());
  auto created = Arena::create(std::move(*backend), 6 * 1024);
  REQUIRE(created.ok());
  Arena& arena = **created;
  PageList first(Role::kExact, 4, 1024);
  REQUIRE(first.grow(arena, 12).ok());
  for (int64_t page = 0; page < 3; ++page) first.pages()[page][5] = static_cast<std::byte>(page + 1);
  PageList second(Role::kExact, 4, 1024);
  second.share(arena, first);
  CHECK(arena.stats().ledger.total() == 3 * 1024);
  CHECK(second.shared_bytes(arena) == 3 * 1024);

  // Slots 5 to 8 lie in pages 1 and 2.
  REQUIRE(second.make_own(arena, 5, 9).ok());
  CHECK(second.pages()[0] == first.pages()[0]);
  CHECK(second.pages()[1] != first.pages()[1]);
  CHECK(second.pages()[1][5] == std::byte{2});
  CHECK(arena.stats().ledger.total() == 5 * 1024);
  second.revert(arena);
  CHECK(second.pages()[1] == first.pages()[1]);
  CHECK(arena.stats().ledger.total() == 3 * 1024);

  REQUIRE(second.make_own(arena, 5, 9).ok());
  second.pages()[1][5] = std::byte{9};
  second.settle(arena);
  CHECK(first.pages()[1][5] == std::byte{2});
  CHECK(first.shared_bytes(arena) == 1024);
  REQUIRE(first.make_own(arena, 4, 12).ok());  // nobody else has them
  REQUIRE(first.make_own(arena, 4, 4).ok());
  CHECK(arena.stats().ledger.total() == 5 * 1024);

  // Room for one copy, not for two.
  PageList third(Role::kExact, 4, 1024);
  third.share(arena, first);
  CHECK(third.make_own(arena, 0, 12).code() == absl::StatusCode::kResourceExhausted);
  third.revert(arena);
  CHECK(third.pages()[0] == first.pages()[0]);
  first.shrink(arena, 0);
  CHECK(third.pages()[2][5] == std::byte{3});
  third.shrink(arena, 0);
  second.shrink(arena, 0);
  CHECK(arena.stats().ledger.total() == 0);
}

TEST_CASE("the counter charges what the arena charges") {
  auto backend = backend::reference_plugin().open({});
  REQUIRE(backend.ok());
  auto arena = Arena::create(std::move(*backend), 1 << 20);
  REQUIRE(arena.ok());
  CountingAllocator counter;
  for (int64_t bytes : {0, 1, 63, 64, 65, 1000, 4097}) {
    auto real = Block::allocate(**arena, Role::kMean, bytes);
    auto counted = Block::allocate(counter, Role::kMean, bytes);
    REQUIRE(real.ok());
    REQUIRE(counted.ok());
    CHECK((*arena)->stats().ledger.total() == counter.ledger().total());
    CHECK(real->charged_bytes() == counted->charged_bytes());
  }
  CHECK((*arena)->stats().ledger.total() == 0);
  CHECK(counter.ledger().total() == 0);
}

}  // namespace
}  // namespace foldkv
