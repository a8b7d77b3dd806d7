#include <algorithm>

#include "runtime/cache/exact_rows.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/token_run.h"

namespace foldkv {
namespace {

// Tokens rebuilt at once: bounds the scratch of a call.
constexpr int64_t kRebuildTokens = 256;

// Scratch of one call: rows before and after rotation, the backend's workspace.
struct Scratch {
  Block rows, rotated, workspace;
};

StatusOr<Scratch> allocate_scratch(const Sequence& sequence, const RebuildQuestion& question, int64_t tokens) {
  Arena& arena = sequence.runtime().arena();
  const int64_t bytes = tokens * sequence.model().layer(question.layer).key_width() * 4;
  Scratch scratch;
  FOLDKV_ASSIGN_OR_RETURN(scratch.rows, Block::allocate(arena, Role::kScratch, bytes));
  if (question.rotated) {
    FOLDKV_ASSIGN_OR_RETURN(scratch.rotated, Block::allocate(arena, Role::kScratch, bytes));
  }
  const GroupPlace place = sequence.shared_profile()->data.place_of_layer[static_cast<size_t>(question.layer)];
  if (place.group < 0) return scratch;
  const PreparedGroup& group = sequence.shared_profile()->data.groups[static_cast<size_t>(place.group)];
  const backend::LatentLayout& layout = group.layouts[sequence.policy().plan];
  const int64_t workspace = sequence.runtime().backend().latent_workspace(
      {group.stacked_width(), layout.keys.stored_width, layout.values.stored_width, 0, tokens});
  FOLDKV_ASSIGN_OR_RETURN(scratch.workspace, Block::allocate(arena, Role::kScratch, workspace));
  return scratch;
}

Status rebuild_latent(const Sequence& sequence, const RebuildQuestion& question, const TokenRun& run,
                      const Scratch& scratch) {
  const GroupPlace place = sequence.shared_profile()->data.place_of_layer[static_cast<size_t>(question.layer)];
  const backend::LatentLayer layer = sequence.latent_layer(question.layer);
  backend::RebuildRequest request;
  request.layout = layer.layout;
  request.region = sequence.latent_region(place.group, sequence.storage().latent_tokens());
  request.side = question.side;
  request.first = run.slot;
  request.count = run.count;
  request.basis = question.side == backend::Side::kKeys ? layer.key_basis : layer.value_basis;
  request.first_row = layer.first_row;
  request.row_count = sequence.model().layer(question.layer).key_width();
  request.output = reinterpret_cast<float*>(scratch.rows.data());
  request.workspace = scratch.workspace.data();
  return sequence.runtime().backend().rebuild(request);
}

Status rotate_rows(const Sequence& sequence, const RebuildQuestion& question, const MutableTensorView& rows,
                   const int32_t* positions, float* output) {
  const backend::AttentionRules& rules =
      sequence.shared_model()->data.layers[static_cast<size_t>(question.layer)].rules;
  backend::PrepareHeadsRequest request;
  request.input = rows;
  request.heads = rules.kv_heads;
  request.head_size = rules.head_size;
  request.rotation = rules.rotation;
  request.positions = positions;
  request.output = output;
  return sequence.runtime().backend().prepare_heads(request);
}

Status rebuild_run(const Sequence& sequence, const RebuildQuestion& question, const TokenRun& run,
                   const Scratch& scratch, const int32_t* positions, const MutableTensorView& output) {
  const int64_t width = sequence.model().layer(question.layer).key_width();
  MutableTensorView rows{scratch.rows.data(), NumberFormat::kF32, run.count, width, width};
  if (run.region == Region::kLatent) {
    FOLDKV_RETURN_IF_ERROR(rebuild_latent(sequence, question, run, scratch));
  } else {
    FOLDKV_RETURN_IF_ERROR(read_exact_rows(sequence, question.layer, question.side, run.slot, rows));
  }
  if (question.rotated) {
    auto* rotated = reinterpret_cast<float*>(scratch.rotated.data());
    FOLDKV_RETURN_IF_ERROR(rotate_rows(sequence, question, rows, positions, rotated));
    rows.data = scratch.rotated.data();
  }
  return sequence.runtime().backend().convert(rows, output);
}

}  // namespace

Status Sequence::rebuild(const RebuildQuestion& question, const MutableTensorView& output) const {
  const bool rotates = question.rotated && question.side == backend::Side::kKeys &&
                       model().layer(question.layer).rotation.has_value();
  RebuildQuestion asked = question;
  asked.rotated = rotates;
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> all_positions, positions());
  FOLDKV_ASSIGN_OR_RETURN(const Scratch scratch,
                          allocate_scratch(*this, asked, std::min(kRebuildTokens, output.row_count)));
  for (int64_t done = 0; done < output.row_count;) {
    const int64_t token = asked.first_token + done;
    TokenRun run = token_run(*this, asked.layer, token);
    run.count = std::min({run.count, kRebuildTokens, output.row_count - done});
    const MutableTensorView target{output.row(done), output.format, run.count, output.column_count,
                                   output.row_stride};
    FOLDKV_RETURN_IF_ERROR(rebuild_run(*this, asked, run, scratch, all_positions.data() + token, target));
    done += run.count;
  }
  return absl::OkStatus();
}

}  // namespace foldkv
