#include "runtime/cache/spilled_pieces.h"

#include <utility>

#include "runtime/base/fingerprint.h"

namespace foldkv {

SpilledPieces::SpilledPieces(std::shared_ptr<SpillStore> store, int64_t bytes)
    : store_(std::move(store)), bytes_(bytes), offset_(store_->reserve(bytes)) {}

SpilledPieces::~SpilledPieces() { store_->release(offset_, bytes_); }

Status SpilledPieces::write(const std::byte* piece, int64_t bytes) {
  const int64_t offset = offset_ + written_;
  pieces_.push_back({offset, fingerprint_of_bytes(piece, static_cast<size_t>(bytes))});
  written_ += bytes;
  return store_->write(offset, piece, bytes);
}

Status SpilledPieces::read(int64_t index, std::byte* piece, int64_t bytes) const {
  const Piece& written = pieces_[static_cast<size_t>(index)];
  FOLDKV_RETURN_IF_ERROR(store_->read(written.offset, piece, bytes));
  if (fingerprint_of_bytes(piece, static_cast<size_t>(bytes)) == written.checksum) return absl::OkStatus();
  return corrupt_error("the spill file does not hold what was written: a checksum does not fit");
}

}  // namespace foldkv
