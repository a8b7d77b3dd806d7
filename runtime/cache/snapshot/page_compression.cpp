#include "runtime/cache/snapshot/page_compression.h"

#include <new>

#if FOLDKV_WITH_ZSTD
#include <zstd.h>
#endif

namespace foldkv {

#if FOLDKV_WITH_ZSTD

StatusOr<std::unique_ptr<PageCompressor>> PageCompressor::create(int level) {
  std::unique_ptr<PageCompressor> compressor(new PageCompressor());
  if (level == 0) return compressor;
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (context == nullptr) throw std::bad_alloc();
  compressor->context_ = context;
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  return compressor;
}

PageCompressor::~PageCompressor() { ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context_)); }

std::span<const std::byte> PageCompressor::compress(std::span<const std::byte> page) {
  if (context_ == nullptr) return page;
  buffer_.resize(ZSTD_compressBound(page.size()));
  const size_t size =
      ZSTD_compress2(static_cast<ZSTD_CCtx*>(context_), buffer_.data(), buffer_.size(), page.data(), page.size());
  if (ZSTD_isError(size) != 0 || size >= page.size()) return page;
  return std::span<const std::byte>(buffer_).first(size);
}

Status decompress_page(std::span<const std::byte> stored, std::span<std::byte> page) {
  const size_t size = ZSTD_decompress(page.data(), page.size(), stored.data(), stored.size());
  if (ZSTD_isError(size) != 0 || size != page.size()) {
    return corrupt_error("the snapshot is not whole or has been changed: a page cannot be decompressed");
  }
  return absl::OkStatus();
}

#else

StatusOr<std::unique_ptr<PageCompressor>> PageCompressor::create(int level) {
  if (level != 0) return unsupported_error("the library was built without Zstandard; snapshots cannot be compressed");
  return std::unique_ptr<PageCompressor>(new PageCompressor());
}

PageCompressor::~PageCompressor() = default;

std::span<const std::byte> PageCompressor::compress(std::span<const std::byte> page) { return page; }

Status decompress_page(std::span<const std::byte> /*stored*/, std::span<std::byte> /*page*/) {
  return unsupported_error("the library was built without Zstandard; the snapshot is compressed");
}

#endif

}  // namespace foldkv
