#include "runtime/cache/rewrite_exact_rows.h"

#include <algorithm>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/cache/exact_rows.h"
#include "runtime/cache/token_run.h"

namespace foldkv {
namespace {

// Tokens written at once: bounds the memory of a call.
constexpr int64_t kPieceTokens = 256;

MutableTensorView rows_in(std::vector<std::byte>& memory, NumberFormat format, int64_t count, int64_t width) {
  return {memory.data(), format, count, width, width};
}

}  // namespace

StatusOr<ExactRows> find_exact_rows(const Sequence& sequence, int64_t layer, backend::Side side, int64_t first_token,
                                    int64_t count) {
  if (!sequence.storage().stores(layer)) {
    return state_error(absl::StrCat("layer ", layer, " reads another layer's keys and values and has none of its own"));
  }
  if (!sequence.heads_agree(layer)) {
    return state_error(absl::StrCat("the KV heads of layer ", layer, " hold different tokens"));
  }
  const TokenRun run = token_run(sequence, layer, 0, first_token);
  if (run.region == Region::kExact && run.count >= count) return ExactRows{layer, side, run.slot, count};
  const int64_t latent = run.region == Region::kLatent ? first_token : first_token + run.count;
  return state_error(
      absl::StrCat("token ", latent, " of layer ", layer, " is a latent; only exact keys and values can be written"));
}

Status rewrite_exact_rows(Sequence& sequence, const ExactRows& target, FillRows fill) {
  backend::Backend& backend = sequence.runtime().backend();
  const NumberFormat format = sequence.policy().format;
  const int64_t width = sequence.model().layer(target.layer).key_width();
  const int64_t most = std::min(kPieceTokens, target.count);
  SequenceStorage& storage = sequence.storage();
  Arena& arena = sequence.runtime().arena();
  FOLDKV_RETURN_IF_ERROR(
      storage.reserve_rewrite(arena, target.layer, target.first_slot, target.first_slot + target.count));
  absl::Cleanup undo = [&] { storage.rollback(arena); };
  std::vector<std::byte> numbers(static_cast<size_t>(most * width * bytes_of(NumberFormat::kF32)));
  std::vector<std::byte> rounded(static_cast<size_t>(most * width * bytes_of(format)));
  bool begun = false;
  absl::Cleanup lost = [&] {
    if (begun) sequence.lose();
  };
  for (const bool writes : {false, true}) {
    for (int64_t done = 0; done < target.count; done += most) {
      const int64_t count = std::min(most, target.count - done);
      const MutableTensorView rows = rows_in(numbers, NumberFormat::kF32, count, width);
      FOLDKV_RETURN_IF_ERROR(fill(done, rows));
      begun = writes;
      FOLDKV_RETURN_IF_ERROR(writes ? write_rows(sequence, target.layer, target.side, target.first_slot + done, rows)
                                    : backend.convert(rows, rows_in(rounded, format, count, width)));
    }
  }
  std::move(lost).Cancel();
  std::move(undo).Cancel();
  storage.publish(arena, {});
  return absl::OkStatus();
}

}  // namespace foldkv
