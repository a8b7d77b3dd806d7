#include "samples/lab/llama2c_file.h"

#include <cstring>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "samples/lab/model_from_llama2c.h"
#include "tests/samples/lab/hostile.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

constexpr size_t kHeaderBytes = 28;

std::vector<std::byte> stories() {
  return foldkv::test::read_bytes(foldkv::test::data_path("stories260K/stories260K.bin"));
}

std::vector<std::byte> with_header_number(std::vector<std::byte> file, size_t index, int32_t number) {
  std::memcpy(file.data() + index * sizeof(number), &number, sizeof(number));
  return file;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  const auto parsed = Llama2cFile::parse(bytes);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST_CASE("stories260K is read whole") {
  const std::vector<std::byte> bytes = stories();
  const auto file = Llama2cFile::parse(bytes);
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  CHECK(file->hidden_size == 64);
  CHECK(file->feed_forward_size == 172);
  CHECK(file->layer_count == 5);
  CHECK(file->query_heads == 8);
  CHECK(file->kv_heads == 4);
  CHECK(file->vocabulary_size == 512);
  CHECK(file->context_length == 512);
  CHECK(file->embedding.size() == 512u * 64 * 4);
  CHECK(file->classifier.empty());
  const auto model = model_from_llama2c(*file);
  REQUIRE_MESSAGE(model.ok(), model.status().message());
  CHECK(model->layers.size() == 5);
  CHECK(&model->classifier() == &model->embedding);
  // The second layer's values stand behind its queries and keys.
  float first_value;
  std::memcpy(&first_value, file->value.data() + 32 * 64 * 4, sizeof(first_value));
  CHECK(model->layers[1].query_key_value.row(64 + 32)[0] == first_value);
}

TEST_CASE("a negative vocabulary size means a classifier of its own") {
  std::vector<std::byte> bytes = with_header_number(stories(), 5, -512);
  CHECK(error_of(bytes).find("classifier at byte") != std::string::npos);
  const size_t end = bytes.size();
  bytes.resize(end + 512u * 64 * 4, std::byte{0});
  const auto file = Llama2cFile::parse(bytes);
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  CHECK(file->classifier.data() == bytes.data() + end);
  const auto model = model_from_llama2c(*file);
  REQUIRE(model.ok());
  CHECK(&model->classifier() == &model->own_classifier);
}

TEST_CASE("what is wrong is named") {
  const std::vector<std::byte> file = stories();
  CHECK(error_of(with_header_number(file, 0, 0)).find("hidden size is 0") != std::string::npos);
  CHECK(error_of(with_header_number(file, 2, -1)).find("layer count is -1") != std::string::npos);
  CHECK(error_of(with_header_number(file, 3, 7)).find("not a multiple of 7") != std::string::npos);
  CHECK(error_of(with_header_number(file, 4, 3)).find("do not share 3") != std::string::npos);
  CHECK(error_of(with_header_number(file, 5, 0)).find("vocabulary size is 0") != std::string::npos);
  CHECK(error_of(with_header_number(file, 5, INT32_MIN)).find("embedding at byte") != std::string::npos);
  CHECK(error_of(with_header_number(file, 1, INT32_MAX)).find("gate weights at byte") != std::string::npos);
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  CHECK(error_of(longer).find("its header asks for 1056540") != std::string::npos);
}

TEST_CASE("every truncation is an error, every flipped byte of the header an error or a valid file") {
  const std::vector<std::byte> file = stories();
  const auto must_fail = [](std::span<const std::byte> bytes) { CHECK_FALSE(Llama2cFile::parse(bytes).ok()); };
  for_each_truncation(std::span(file).first(4096), 1, must_fail);
  for_each_truncation(file, 4999, must_fail);
  std::vector<std::byte> all_patterns;
  for (int pattern = 1; pattern < 256; ++pattern) all_patterns.push_back(static_cast<std::byte>(pattern));
  for_each_flip(file, kHeaderBytes, all_patterns, [](std::span<const std::byte> bytes) {
    const auto parsed = Llama2cFile::parse(bytes);
    if (parsed.ok()) CHECK(model_from_llama2c(*parsed).status().code() != absl::StatusCode::kInternal);
  });
}

}  // namespace
}  // namespace foldkv_lab::test
