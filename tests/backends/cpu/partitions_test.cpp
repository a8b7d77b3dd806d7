#include "backends/cpu/partitions.h"

#include "doctest/doctest.h"
#include "tests/support/random.h"

namespace foldkv::backend::cpu {
namespace {

TEST_CASE("partitions cover a region without gaps, in tiles of 64, and begin where they do in longer regions") {
  for (const int64_t tokens : {1, 63, 64, 511, 512, 513, 16383, 16384, 16385, 32768, 40000, 131072, 1000000}) {
    CAPTURE(tokens);
    const int64_t count = partition_count(tokens);
    int64_t next = 0;
    for (int64_t index = 0; index < count; ++index) {
      const SlotRange range = partition(index, tokens);
      CHECK(range.first == next);
      CHECK(range.first % 64 == 0);
      CHECK(range.end > range.first);
      CHECK(range.first == partition(index, 4 * tokens).first);
      next = range.end;
    }
    CHECK(next == tokens);
  }
  CHECK(partition_count(0) == 0);
}

TEST_CASE("the bound of partitions holds for every split of the tokens and never falls") {
  test::Random random(1);
  for (int round = 0; round < 3000; ++round) {
    const int64_t regions = random.between(1, 12);
    int64_t tokens = 0;
    int64_t partitions = 0;
    for (int64_t region = 0; region < regions; ++region) {
      const int64_t length = random.between(0, int64_t{1} << random.between(0, 18));
      tokens += length;
      partitions += partition_count(length);
    }
    CHECK(partitions <= most_partitions(tokens, regions));
    CHECK(most_partitions(tokens, regions) <= most_partitions(tokens + random.between(0, 70000), regions));
    CHECK(most_partitions(tokens, regions) <= most_partitions(tokens, regions + random.between(0, 9)));
  }
}

}  // namespace
}  // namespace foldkv::backend::cpu
