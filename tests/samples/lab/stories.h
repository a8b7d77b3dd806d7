#pragma once

#include <string>
#include <utility>

#include "doctest/doctest.h"
#include "samples/lab/language_model.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {

inline LanguageModel load_stories() {
  auto model = load_language_model(foldkv::test::data_path("stories260K/stories260K.bin").string(), "");
  REQUIRE_MESSAGE(model.ok(), model.status().message());
  return std::move(model).value();
}

// What greedy decoding from the begin token gives: 60 tokens (tests/data/stories260K/README.md).
inline const std::string kStoriesText =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a "
    "big, red ball. She wanted to play with it, but it was too high";

}  // namespace foldkv_lab::test
