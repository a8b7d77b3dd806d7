#include "absl/cleanup/cleanup.h"
#include "runtime/cache/rewrite_exact_rows.h"
#include "runtime/cache/sequence.h"

namespace foldkv {

Status Sequence::replace(const ReplaceQuestion& question, const TensorView& rows) {
  FOLDKV_RETURN_IF_ERROR(begin_change());
  const absl::Cleanup end = [this] { end_change(); };
  const StatusOr<ExactRows> target =
      find_exact_rows(*this, question.layer, question.side, question.first_token, rows.row_count);
  if (!target.ok()) return with_argument(target.status(), "options.first_token");
  const Status written = rewrite_exact_rows(*this, *target, [&](int64_t first, const MutableTensorView& piece) {
    return runtime_->backend().convert(rows.rows(first, piece.row_count), piece);
  });
  return written.ok() ? written : with_argument(written, "rows");
}

}  // namespace foldkv
