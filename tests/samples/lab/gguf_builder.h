#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "samples/lab/tensor_type.h"

namespace foldkv_lab::test {

// Writes GGUF files in memory, right ones and wrong ones: nothing is checked here.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the data; written as metadata when it is not the default
  // Added to the counts in the header.
  int64_t tensor_count_error = 0;
  int64_t metadata_count_error = 0;

  void add_u32(const std::string& key, uint32_t value) { add_scalar(key, 4, value); }
  void add_i32(const std::string& key, int32_t value) { add_scalar(key, 5, value); }
  void add_u64(const std::string& key, uint64_t value) { add_scalar(key, 10, value); }
  void add_f32(const std::string& key, float value) { add_scalar(key, 6, value); }
  void add_truth(const std::string& key, uint8_t value) { add_scalar(key, 7, value); }
  void add_text(const std::string& key, const std::string& value) {
    begin_entry(key, 8);
    put_text(&metadata_, value);
  }
  void add_texts(const std::string& key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values) put_text(&metadata_, value);
  }
  void add_i32s(const std::string& key, const std::vector<int32_t>& values) {
    begin_array(key, 5, values.size());
    for (const int32_t value : values) put(&metadata_, value);
  }
  void add_f32s(const std::string& key, const std::vector<float>& values) {
    begin_array(key, 6, values.size());
    for (const float value : values) put(&metadata_, value);
  }
  // An entry whose bytes after the type code are the caller's.
  void add_raw(const std::string& key, uint32_t type, const std::vector<std::byte>& bytes) {
    begin_entry(key, type);
    metadata_.insert(metadata_.end(), bytes.begin(), bytes.end());
  }

  // shape: the fastest dimension first.
  void add_tensor(const std::string& name, const std::vector<uint64_t>& shape, TensorType type,
                  const std::vector<std::byte>& bytes) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    add_tensor_at(name, shape, static_cast<uint32_t>(type), data_.size());
    data_.insert(data_.end(), bytes.begin(), bytes.end());
  }
  void add_floats(const std::string& name, const std::vector<uint64_t>& shape, const std::vector<float>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(float));
    if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    add_tensor(name, shape, TensorType::kF32, bytes);
  }
  // An entry alone, wherever it points.
  void add_tensor_at(const std::string& name, const std::vector<uint64_t>& shape, uint32_t type, uint64_t offset) {
    put_text(&entries_, name);
    put(&entries_, static_cast<uint32_t>(shape.size()));
    for (const uint64_t size : shape) put(&entries_, size);
    put(&entries_, type);
    put(&entries_, offset);
    ++tensor_count_;
  }

  [[nodiscard]] std::vector<std::byte> build() {
    if (alignment != 32) add_u32("general.alignment", static_cast<uint32_t>(alignment));
    std::vector<std::byte> file;
    put(&file, uint32_t{0x46554747});
    put(&file, version);
    put(&file, tensor_count_ + static_cast<uint64_t>(tensor_count_error));
    put(&file, metadata_count_ + static_cast<uint64_t>(metadata_count_error));
    file.insert(file.end(), metadata_.begin(), metadata_.end());
    file.insert(file.end(), entries_.begin(), entries_.end());
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    file.insert(file.end(), data_.begin(), data_.end());
    return file;
  }

  template <typename Number>
  static void put(std::vector<std::byte>* bytes, Number number) {
    const size_t start = bytes->size();
    bytes->resize(start + sizeof(Number));
    std::memcpy(bytes->data() + start, &number, sizeof(Number));
  }
  static void put_text(std::vector<std::byte>* bytes, const std::string& text) {
    put(bytes, static_cast<uint64_t>(text.size()));
    for (const char character : text) bytes->push_back(static_cast<std::byte>(character));
  }

 private:
  void begin_entry(const std::string& key, uint32_t type) {
    put_text(&metadata_, key);
    put(&metadata_, type);
    ++metadata_count_;
  }
  void begin_array(const std::string& key, uint32_t type, size_t count) {
    begin_entry(key, 9);
    put(&metadata_, type);
    put(&metadata_, static_cast<uint64_t>(count));
  }
  template <typename Number>
  void add_scalar(const std::string& key, uint32_t type, Number number) {
    begin_entry(key, type);
    put(&metadata_, number);
  }

  std::vector<std::byte> metadata_;
  std::vector<std::byte> entries_;
  std::vector<std::byte> data_;
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
};

}  // namespace foldkv_lab::test
