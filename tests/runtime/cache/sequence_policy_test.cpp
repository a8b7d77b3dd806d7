#include "runtime/cache/sequence_policy.h"

#include "doctest/doctest.h"

namespace foldkv {
namespace {

TEST_CASE("the end of a prompt encodes all but sinks and recent tokens") {
  const SequencePolicy policy;
  CHECK(encode_count(policy, {768, false, true}) == 700);
  CHECK(encode_count(policy, {68, false, true}) == 0);
  CHECK(encode_count(policy, {0, false, true}) == 0);
}

TEST_CASE("a first run too short for a mean waits") {
  const SequencePolicy policy;
  CHECK(encode_count(policy, {68 + 15, false, true}) == 0);
  CHECK(encode_count(policy, {68 + 16, false, true}) == 16);
  CHECK(encode_count(policy, {68 + 1, true, true}) == 1);
}

TEST_CASE("generated tokens fold in whole runs, or never") {
  SequencePolicy policy;
  CHECK(encode_count(policy, {68 + 63, true, false}) == 0);
  CHECK(encode_count(policy, {68 + 64, true, false}) == 64);
  CHECK(encode_count(policy, {68 + 200, true, false}) == 192);
  policy.fold_tokens = 5;
  CHECK(encode_count(policy, {68 + 15, false, false}) == 0);
  CHECK(encode_count(policy, {68 + 20, false, false}) == 20);
  policy.fold_tokens.reset();
  CHECK(encode_count(policy, {10000, true, false}) == 0);
}

}  // namespace
}  // namespace foldkv
