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
