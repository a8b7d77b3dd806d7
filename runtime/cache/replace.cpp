#include "absl/cleanup/cleanup.h"
#include "runtime/cache/rewrite_exact_rows.h"
#include "runtime/cache/sequence.h"

namespace foldkv {

Status Sequence::replace(const ReplaceQuestion& question, const TensorView& rows) {
  if (!try_acquire()) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  const absl::Cleanup release = [this] { release_ownership(); };
  const StatusOr<ExactRows> target =
      find_exact_rows(*this, question.layer, question.side, question.first_token, rows.row_count);
  if (!target.ok()) return with_argument(target.status(), "options.first_token");
  const Status written = rewrite_exact_rows(*this, *target, [&](int64_t first, const MutableTensorView& piece) {
    return runtime_->backend().convert(rows.rows(first, piece.row_count), piece);
  });
  return written.ok() ? written : with_argument(written, "rows");
}

}  // namespace foldkv
