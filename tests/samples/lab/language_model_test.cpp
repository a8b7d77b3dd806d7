#include "samples/lab/language_model.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/samples/lab/small_models.h"
#include "tests/samples/lab/stories.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

std::string write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

TEST_CASE("the first bytes say what a file is, and its name names its content") {
  const LanguageModel stories = load_stories();
  CHECK(stories.model.shape.architecture == "llama2.c");
  CHECK(stories.tokenizer->vocabulary_size() == 512);
  CHECK(stories.name.find("stories260K.bin ") == 0);

  const foldkv::test::TemporaryFolder folder;
  std::vector<std::byte> bytes = gguf_of(random_model(small_shape("qwen2"), 1, 5)).build();
  const auto first = load_language_model(write_file(folder.path() / "m", bytes), "");
  REQUIRE_MESSAGE(first.ok(), first.status().message());
  CHECK(first->model.shape.architecture == "qwen2");
  bytes.back() ^= std::byte{1};
  const auto second = load_language_model(write_file(folder.path() / "m", bytes), "");
  REQUIRE(second.ok());
  CHECK(first->name != second->name);
}

TEST_CASE("files that are no model") {
  const foldkv::test::TemporaryFolder folder;
  CHECK_FALSE(load_language_model((folder.path() / "absent").string(), "").ok());
  CHECK_FALSE(load_language_model(folder.path().string(), "").ok());
  CHECK_FALSE(load_language_model(write_file(folder.path() / "empty", {}), "").ok());
  CHECK_FALSE(load_language_model(write_file(folder.path() / "short", {std::byte{'G'}, std::byte{'G'}}), "").ok());
}

TEST_CASE("a llama2.c model without its tokenizer, and with the tokenizer named") {
  const foldkv::test::TemporaryFolder folder;
  const std::string model = (folder.path() / "model.bin").string();
  std::filesystem::copy_file(foldkv::test::data_path("stories260K/stories260K.bin"), model);
  const auto alone = load_language_model(model, "");
  REQUIRE_FALSE(alone.ok());
  CHECK(std::string(alone.status().message()).find("--tokenizer") != std::string::npos);
  CHECK(load_language_model(model, foldkv::test::data_path("stories260K/tok512.bin").string()).ok());
  CHECK_FALSE(load_language_model(model, model).ok());
}

TEST_CASE("a tokenizer that is smaller than the model's vocabulary") {
  ModelShape shape = small_shape("llama");
  shape.vocabulary_size = 300;
  const foldkv::test::TemporaryFolder folder;
  const auto model =
      load_language_model(write_file(folder.path() / "m", gguf_of(random_model(shape, 1, 0)).build()), "");
  REQUIRE_FALSE(model.ok());
  CHECK(std::string(model.status().message()).find("262 tokens, the model 300") != std::string::npos);
}

}  // namespace
}  // namespace foldkv_lab::test
