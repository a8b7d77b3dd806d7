#include "samples/lab/gguf_file.h"

#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/samples/lab/gguf_builder.h"
#include "tests/samples/lab/hostile.h"

namespace foldkv_lab::test {
namespace {

// One of everything.
GgufBuilder small_file() {
  GgufBuilder file;
  file.add_u32("answer", 42);
  file.add_i32("debt", -7);
  file.add_u64("large", uint64_t{1} << 40);
  file.add_f32("pi", 3.25f);
  file.add_truth("yes", 1);
  file.add_text("name", "small");
  file.add_texts("words", {"a", "", "longer than that"});
  file.add_i32s("signed", {1, -2, 3});
  file.add_f32s("real", {0.5f, -1.5f});
  file.add_floats("vector", {3}, {1, 2, 3});
  file.add_tensor("matrix", {32, 2}, TensorType::kQ8_0, std::vector<std::byte>(68, std::byte{1}));
  return file;
}

std::string error_of(GgufBuilder file) {
  const std::vector<std::byte> bytes = file.build();
  const auto parsed = GgufFile::parse(bytes);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a small file is read whole") {
  GgufBuilder builder = small_file();
  const std::vector<std::byte> bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  CHECK(*file->unsigned_number("answer") == 42);
  CHECK(*file->unsigned_number("large") == uint64_t{1} << 40);
  CHECK(*file->real_number("pi") == 3.25);
  CHECK(*file->truth_or("yes", false));
  CHECK(*file->text("name") == "small");
  REQUIRE(file->texts("words")->size() == 3);
  CHECK((*file->texts("words"))[2] == "longer than that");
  CHECK((*file->signed_numbers("signed"))[1] == -2);
  CHECK((*file->real_numbers("real"))[1] == -1.5);
  REQUIRE(file->tensors().size() == 2);
  const GgufTensor* matrix = file->find_tensor("matrix");
  REQUIRE(matrix != nullptr);
  CHECK(matrix->shape == std::vector<uint64_t>{32, 2});
  CHECK(matrix->element_count == 64);
  CHECK(matrix->bytes.size() == 68);
  CHECK(matrix->bytes[0] == std::byte{1});
  CHECK(file->find_tensor("absent") == nullptr);
}

TEST_CASE("metadata of another kind, or none, is an error and not a guess") {
  GgufBuilder builder = small_file();
  const std::vector<std::byte> bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  REQUIRE(file.ok());
  CHECK_FALSE(file->unsigned_number("debt").ok());
  CHECK_FALSE(file->unsigned_number("name").ok());
  CHECK_FALSE(file->real_number("answer").ok());
  CHECK_FALSE(file->text("answer").ok());
  CHECK_FALSE(file->texts("signed").ok());
  CHECK_FALSE(file->truth_or("answer", false).ok());
  CHECK_FALSE(file->text("absent").ok());
  CHECK(*file->unsigned_number_or("absent", 5) == 5);
  CHECK(*file->real_number_or("absent", 0.5) == 0.5);
  CHECK(*file->text_or("absent", "x") == "x");
}

TEST_CASE("what is wrong is named") {
  GgufBuilder file = small_file();
  SUBCASE("version 1") {
    file.version = 1;
    CHECK(contains(error_of(file), "version 1, expected 2 or 3"));
  }
  SUBCASE("more tensors than bytes") {
    file.tensor_count_error = int64_t{1} << 62;
    CHECK(contains(error_of(file), "tensors do not fit"));
  }
  SUBCASE("more metadata than bytes") {
    file.metadata_count_error = -100;
    CHECK(contains(error_of(file), "metadata entries do not fit"));
  }
  SUBCASE("a key twice") {
    file.add_u32("answer", 43);
    CHECK(contains(error_of(file), "answer occurs twice"));
  }
  SUBCASE("a tensor twice") {
    file.add_floats("vector", {1}, {0});
    CHECK(contains(error_of(file), "vector occurs twice"));
  }
  SUBCASE("a dimension of zero") {
    file.add_floats("empty", {4, 0}, {});
    CHECK(contains(error_of(file), "dimension 1 is zero"));
  }
  SUBCASE("no dimension") {
    file.add_floats("point", {}, {1});
    CHECK(contains(error_of(file), "has 0 dimensions"));
  }
  SUBCASE("five dimensions") {
    file.add_floats("many", {1, 1, 1, 1, 1}, {1});
    CHECK(contains(error_of(file), "has 5 dimensions"));
  }
  SUBCASE("a product of dimensions beyond 64 bits") {
    file.add_tensor_at("huge", {uint64_t{1} << 33, uint64_t{1} << 33}, 0, 0);
    CHECK(contains(error_of(file), "does not fit 64 bits"));
  }
  SUBCASE("bytes beyond 64 bits") {
    file.add_tensor_at("huge", {uint64_t{1} << 62}, 0, 0);
    CHECK(contains(error_of(file), "does not fit 64 bits"));
  }
  SUBCASE("rows that are no whole blocks") {
    file.add_tensor("odd", {31}, TensorType::kQ8_0, std::vector<std::byte>(34));
    CHECK(contains(error_of(file), "not whole blocks of 32"));
  }
  SUBCASE("a type that is not known") {
    file.add_tensor_at("strange", {1}, 99, 0);
    CHECK(contains(error_of(file), "has type 99"));
  }
  SUBCASE("an offset that is not aligned") {
    file.add_tensor_at("crooked", {1}, 0, 4);
    CHECK(contains(error_of(file), "not a multiple of 32"));
  }
  SUBCASE("a tensor behind the end") {
    file.add_tensor_at("far", {1}, 0, uint64_t{1} << 63);
    CHECK(contains(error_of(file), "end beyond"));
  }
  SUBCASE("tensors that share bytes") {
    file.add_tensor_at("shared", {3}, 0, 0);
    CHECK(contains(error_of(file), "overlap"));
  }
  SUBCASE("an alignment of zero") {
    file.add_u32("general.alignment", 0);
    CHECK(contains(error_of(file), "general.alignment is 0"));
  }
  SUBCASE("a truth value of two") {
    file.add_truth("maybe", 2);
    CHECK(contains(error_of(file), "expected 0 or 1"));
  }
}

TEST_CASE("alignments other than 32") {
  GgufBuilder file;
  file.alignment = 64;
  file.add_floats("a", {1}, {1});
  file.add_floats("b", {1}, {2});
  const std::vector<std::byte> bytes = file.build();
  const auto parsed = GgufFile::parse(bytes);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  CHECK(parsed->find_tensor("b")->bytes.data() - parsed->find_tensor("a")->bytes.data() == 64);
}

// 32-bit element type, 64-bit count.
std::vector<std::byte> array_head(uint32_t type, uint64_t count) {
  std::vector<std::byte> bytes;
  GgufBuilder::put(&bytes, type);
  GgufBuilder::put(&bytes, count);
  return bytes;
}

TEST_CASE("hostile arrays") {
  GgufBuilder file;
  SUBCASE("more elements than bytes") {
    file.add_raw("numbers", 9, array_head(0, uint64_t{1} << 60));
    CHECK(contains(error_of(file), "does not fit"));
  }
  SUBCASE("an element type that does not exist") {
    file.add_raw("numbers", 9, array_head(77, 0));
    CHECK(contains(error_of(file), "unknown type 77"));
  }
  SUBCASE("arrays in arrays without end") {
    std::vector<std::byte> nested;
    for (int depth = 0; depth < 5000; ++depth) {
      const std::vector<std::byte> head = array_head(9, 1);
      nested.insert(nested.end(), head.begin(), head.end());
    }
    file.add_raw("nested", 9, nested);
    CHECK(contains(error_of(file), "nest deeper"));
  }
  SUBCASE("arrays in arrays, as many as writers use") {
    std::vector<std::byte> nested = array_head(9, 2);
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::byte> head = array_head(0, 1);
      nested.insert(nested.end(), head.begin(), head.end());
      nested.push_back(std::byte{9});
    }
    file.add_raw("nested", 9, nested);
    CHECK(error_of(file).empty());
  }
  SUBCASE("a text longer than the file") {
    std::vector<std::byte> length;
    GgufBuilder::put(&length, ~uint64_t{0});
    file.add_raw("text", 8, length);
    CHECK(contains(error_of(file), "left"));
  }
}

TEST_CASE("every truncation is an error, every flipped byte an error or a valid file") {
  GgufBuilder builder = small_file();
  const std::vector<std::byte> file = builder.build();
  for_each_truncation(file, 1, [](std::span<const std::byte> bytes) { CHECK_FALSE(GgufFile::parse(bytes).ok()); });
  int valid = 0;
  for_each_flip(file, file.size(), kFlipPatterns, [&](std::span<const std::byte> bytes) {
    const auto parsed = GgufFile::parse(bytes);
    if (!parsed.ok()) return;
    ++valid;
    for (const GgufTensor& tensor : parsed->tensors()) {
      CHECK(tensor.bytes.data() >= bytes.data());
      CHECK(tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
    }
  });
  CHECK(valid > 0);
}

}  // namespace
}  // namespace foldkv_lab::test
