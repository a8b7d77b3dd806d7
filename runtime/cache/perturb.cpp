#include <span>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/exact_rows.h"
#include "runtime/cache/rewrite_exact_rows.h"
#include "runtime/cache/sequence.h"
#include "runtime/calibration/perturbation_noise.h"

namespace foldkv {
namespace {

// Adds noise to dense rows of one layer at these positions.
void perturb_rows(const PerturbQuestion& question, const LayerRules& rules, std::span<const int32_t> positions,
                  const MutableTensorView& rows) {
  NoiseKey key;
  key.seed = question.seed;
  key.example = question.example;
  key.layer = question.layer;
  key.side = static_cast<int32_t>(question.side);
  const auto head_size = static_cast<size_t>(rules.head_size);
  for (int64_t row = 0; row < rows.row_count; ++row) {
    key.position = positions[static_cast<size_t>(row)];
    auto* numbers = reinterpret_cast<float*>(rows.row(row));
    for (key.head = 0; key.head < rules.kv_heads; ++key.head) {
      add_perturbation({numbers + static_cast<size_t>(key.head) * head_size, head_size}, question.scale, key);
    }
  }
}

}  // namespace

Status Sequence::perturb(const PerturbQuestion& question) {
  FOLDKV_RETURN_IF_ERROR(begin_change());
  const absl::Cleanup end = [this] { end_change(); };
  const StatusOr<ExactRows> target =
      find_exact_rows(*this, question.layer, question.side, question.first_token, question.token_count);
  if (!target.ok()) return with_argument(target.status(), "options.first_token");
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> all, held_positions(question.layer, 0));
  const Status written = rewrite_exact_rows(*this, *target, [&](int64_t first, const MutableTensorView& piece) {
    const HeadRange heads = {0, model().layer(question.layer).kv_heads};
    FOLDKV_RETURN_IF_ERROR(read_heads(*this, question.layer, heads, question.side, target->first_slot + first, piece));
    const std::span<const int32_t> rest(all);
    perturb_rows(question, model().layer(question.layer),
                 rest.subspan(static_cast<size_t>(question.first_token + first), static_cast<size_t>(piece.row_count)),
                 piece);
    return absl::OkStatus();
  });
  return written.ok() ? written : with_argument(written, "options.scale");
}

}  // namespace foldkv
