#include "runtime/cache/reencode.h"

#include <algorithm>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/cache/encode_run.h"
#include "runtime/codec/latent_layout.h"

namespace foldkv {
namespace {

using backend::Side;

// Tokens rebuilt at once, into one page of every layer.
constexpr int64_t kPieceTokens = 64;

const PreparedGroup& group_of(const Sequence& sequence, int64_t group) {
  return sequence.shared_profile()->data.groups[static_cast<size_t>(group)];
}

backend::ExactLayout piece_layout(const PreparedGroup& group) {
  return {kPieceTokens, group.key_width, NumberFormat::kF32};
}

int64_t pieces_bytes(const PreparedGroup& group) {
  return std::ssize(group.layers) * round_up(piece_layout(group).page_bytes(), kBlockAlignment);
}

int64_t workspace_bytes(const Sequence& sequence, const PreparedGroup& group, size_t plan) {
  int64_t bytes = 0;
  for (const size_t used : {sequence.policy().plan, plan}) {
    bytes = std::max(bytes, sequence.runtime().backend().latent_workspace(latent_shape(group, used, kPieceTokens)));
  }
  return round_up(bytes, kBlockAlignment);
}

// One group, piece by piece.
class Reencoding {
 public:
  Reencoding(const Sequence& sequence, int64_t group, size_t plan, const PageList& pages, std::byte* scratch)
      : sequence_(sequence),
        backend_(sequence.runtime().backend()),
        group_(group_of(sequence, group)),
        from_(group_.layouts[sequence.policy().plan]),
        to_(group_.layouts[plan]),
        count_(sequence.storage().latent_tokens(group)),
        region_(sequence.latent_region(group, count_)),
        pages_(pages),
        workspace_(scratch + pieces_bytes(group_)) {
    for (size_t layer = 0; layer < group_.layers.size(); ++layer) {
      rows_.push_back(scratch +
                      static_cast<int64_t>(layer) * round_up(piece_layout(group_).page_bytes(), kBlockAlignment));
    }
  }

  Status run() {
    for (int64_t first = 0; first < count_; first += kPieceTokens) {
      const int64_t count = std::min(kPieceTokens, count_ - first);
      for (const Side side : {Side::kKeys, Side::kValues}) FOLDKV_RETURN_IF_ERROR(rebuild(side, first, count));
      for (const Side side : {Side::kKeys, Side::kValues}) FOLDKV_RETURN_IF_ERROR(encode(side, first, count));
      FOLDKV_RETURN_IF_ERROR(correct(first, count));
    }
    return absl::OkStatus();
  }

 private:
  Status rebuild(Side side, int64_t first, int64_t count) {
    backend::RebuildRequest request;
    request.layout = &from_;
    request.region = region_;
    request.side = side;
    request.first = first;
    request.count = count;
    request.row_count = group_.key_width;
    request.workspace = workspace_;
    for (size_t layer = 0; layer < rows_.size(); ++layer) {
      request.first_row = static_cast<int64_t>(layer) * group_.key_width;
      request.basis = group_.bases(side).rebuilding() + request.first_row * from_.plane(side).width;
      request.output = reinterpret_cast<float*>(rows_[layer] + piece_layout(group_).side_offset(side));
      FOLDKV_RETURN_IF_ERROR(backend_.rebuild(request));
    }
    return absl::OkStatus();
  }

  backend::StackedRows stacked(Side side, int64_t count) {
    regions_.clear();
    for (std::byte*& page : rows_) regions_.push_back({&page, count});
    return {regions_, piece_layout(group_), side, 0, count, nullptr};
  }

  Status encode(Side side, int64_t first, int64_t count) {
    backend::EncodeRequest request;
    request.rows = stacked(side, count);
    request.mean = side == Side::kKeys ? region_.key_mean : region_.value_mean;
    request.basis = group_.bases(side).projecting();
    request.layout = &to_;
    request.pages = pages_.pages();
    request.first_latent_slot = first;
    request.workspace = workspace_;
    return backend_.encode(request);
  }

  Status correct(int64_t first, int64_t count) {
    if (group_.correction.rank == 0) return absl::OkStatus();
    backend::CoefficientsRequest request;
    request.rows = stacked(Side::kKeys, count);
    request.layout = &to_;
    request.region = region_;
    request.region.pages = pages_.pages();
    request.first_latent_slot = first;
    request.basis = group_.bases(Side::kKeys).rebuilding();
    request.workspace = workspace_;
    return backend_.coefficients(request);
  }

  const Sequence& sequence_;
  backend::Backend& backend_;
  const PreparedGroup& group_;
  const backend::LatentLayout& from_;
  const backend::LatentLayout& to_;
  int64_t count_;
  backend::LatentRegion region_;
  const PageList& pages_;
  std::byte* workspace_;
  std::vector<std::byte*> rows_;  // of each layer
  std::vector<backend::ExactRegion> regions_;
};

}  // namespace

Status reencode(const Sequence& sequence, int64_t group, size_t plan, const PageList& pages) {
  const PreparedGroup& prepared = group_of(sequence, group);
  FOLDKV_ASSIGN_OR_RETURN(const Block scratch,
                          Block::allocate(sequence.runtime().arena(), Role::kScratch,
                                          pieces_bytes(prepared) + workspace_bytes(sequence, prepared, plan)));
  return Reencoding(sequence, group, plan, pages, scratch.data()).run();
}

int64_t reencode_bytes(const Sequence& sequence, size_t plan) {
  int64_t bytes = 0;
  for (const PreparedGroup& group : sequence.shared_profile()->data.groups) {
    bytes = std::max(bytes, pieces_bytes(group) + workspace_bytes(sequence, group, plan));
  }
  return bytes;
}

}  // namespace foldkv
