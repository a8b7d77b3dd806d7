#include <algorithm>

#include "runtime/cache/exact_rows.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/token_run.h"

namespace foldkv {
namespace {

// Tokens rebuilt at once: bounds the scratch of a call.
constexpr int64_t kRebuildTokens = 256;

HeadRange heads_of(const Sequence& sequence, const RebuildQuestion& question) {
  return question.head.has_value() ? HeadRange{*question.head, 1}
                                   : HeadRange{0, sequence.model().layer(question.layer).kv_heads};
}

int64_t width_of(const Sequence& sequence, const RebuildQuestion& question) {
  return heads_of(sequence, question).count * sequence.model().layer(question.layer).head_size;
}

// Scratch of one call: rows before and after rotation, the backend's workspace.
struct Scratch {
  Block rows, rotated, workspace;
};

StatusOr<Scratch> allocate_scratch(const Sequence& sequence, const RebuildQuestion& question, int64_t tokens) {
  Arena& arena = sequence.runtime().arena();
  const int64_t bytes = tokens * width_of(sequence, question) * 4;
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
  request.region = sequence.latent_region(place.group, sequence.storage().latent_tokens(place.group));
  request.side = question.side;
  request.first = run.slot;
  request.count = run.count;
  const int64_t before = heads_of(sequence, question).first * sequence.model().layer(question.layer).head_size;
  const float* const basis = question.side == backend::Side::kKeys ? layer.key_basis : layer.value_basis;
  request.basis = basis == nullptr ? nullptr : basis + before * layer.layout->plane(question.side).width;
  request.first_row = layer.first_row + before;
  request.row_count = width_of(sequence, question);
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
  request.heads = heads_of(sequence, question).count;
  request.head_size = rules.head_size;
  request.rotation = rules.rotation;
  request.positions = positions;
  request.output = output;
  return sequence.runtime().backend().prepare_heads(request);
}

Status rebuild_run(const Sequence& sequence, const RebuildQuestion& question, const TokenRun& run,
                   const Scratch& scratch, const int32_t* positions, const MutableTensorView& output) {
  const int64_t width = width_of(sequence, question);
  MutableTensorView rows{scratch.rows.data(), NumberFormat::kF32, run.count, width, width};
  if (run.region == Region::kLatent) {
    FOLDKV_RETURN_IF_ERROR(rebuild_latent(sequence, question, run, scratch));
  } else {
    FOLDKV_RETURN_IF_ERROR(
        read_heads(sequence, question.layer, heads_of(sequence, question), question.side, run.slot, rows));
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
  const Reader reader(*this);
  FOLDKV_RETURN_IF_ERROR(reader.status());
  return rebuild_held(question, output);
}

Status Sequence::rebuild_held(const RebuildQuestion& question, const MutableTensorView& output) const {
  const bool rotates =
      question.rotated && question.side == backend::Side::kKeys && model().layer(question.layer).rotation.has_value();
  RebuildQuestion asked = question;
  asked.rotated = rotates;
  if (!asked.head.has_value() && !heads_agree(asked.layer)) {
    return state_error(
        absl::StrCat("the KV heads of layer ", asked.layer, " hold different tokens; ask for one of them"));
  }
  const int64_t head = heads_of(*this, asked).first;
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> all_positions, held_positions(asked.layer, head));
  FOLDKV_ASSIGN_OR_RETURN(const Scratch scratch,
                          allocate_scratch(*this, asked, std::min(kRebuildTokens, output.row_count)));
  for (int64_t done = 0; done < output.row_count;) {
    const int64_t token = asked.first_token + done;
    TokenRun run = token_run(*this, asked.layer, head, token);
    run.count = std::min({run.count, kRebuildTokens, output.row_count - done});
    FOLDKV_RETURN_IF_ERROR(
        rebuild_run(*this, asked, run, scratch, all_positions.data() + token, output.rows(done, run.count)));
    done += run.count;
  }
  return absl::OkStatus();
}

}  // namespace foldkv
