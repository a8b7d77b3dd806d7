#include "samples/lab/command_arguments.h"

#include "doctest/doctest.h"

namespace foldkv_lab::test {
namespace {

TEST_CASE("bands") {
  const auto bands = parse_bands("64x8,128x0");
  REQUIRE(bands.ok());
  REQUIRE(bands->size() == 2);
  CHECK((*bands)[0].width == 64);
  CHECK((*bands)[0].bits == 8);
  CHECK((*bands)[1].width == 128);
  CHECK((*bands)[1].bits == 0);
  CHECK(parse_bands("")->empty());
  for (const char* wrong : {"64", "64x", "x8", "64x8x1", "axb", "64:8"}) CHECK_FALSE(parse_bands(wrong).ok());
}

TEST_CASE("none and default are told apart") {
  SequenceArguments arguments;
  CHECK(arguments.options().sequence.sink_tokens == 4);
  arguments.sinks = 0;
  arguments.recent = 0;
  arguments.fold = 0;
  CHECK(arguments.options().sequence.sink_tokens == -1);
  CHECK(arguments.options().sequence.recent_tokens == -1);
  CHECK(arguments.options().sequence.fold_tokens == -1);
}

TEST_CASE("bytes in words") {
  CHECK(byte_text(512) == "512 B");
  CHECK(byte_text(1536) == "1.5 KiB");
  CHECK(byte_text(3.0 * 1024 * 1024) == "3.0 MiB");
}

}  // namespace
}  // namespace foldkv_lab::test
