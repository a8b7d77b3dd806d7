#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv {

// Compresses pages with Zstandard. Unsupported error where the library was built without it.
class PageCompressor {
 public:
  // level 0: pages stay as they are.
  [[nodiscard]] static StatusOr<std::unique_ptr<PageCompressor>> create(int level);
  ~PageCompressor();
  PageCompressor(const PageCompressor&) = delete;
  PageCompressor& operator=(const PageCompressor&) = delete;

  // The page compressed, or itself where that is not smaller. Valid until the next call.
  [[nodiscard]] std::span<const std::byte> compress(std::span<const std::byte> page);

 private:
  PageCompressor() = default;

  void* context_ = nullptr;
  std::vector<std::byte> buffer_;
};

// Corrupt error when the bytes are no frame of a page of that size.
[[nodiscard]] Status decompress_page(std::span<const std::byte> stored, std::span<std::byte> page);

}  // namespace foldkv
