#include "runtime/cache/snapshot/inspect_snapshot.h"

#include "runtime/cache/snapshot/snapshot_index.h"
#include "runtime/profile/read_numbers.h"

namespace foldkv {

StatusOr<SnapshotSummary> inspect_snapshot(ReadBytes read) {
  FOLDKV_ASSIGN_OR_RETURN(const SnapshotIndex index, SnapshotIndex::read(read));
  const file::Snapshot& root = index.root();
  SnapshotSummary summary;
  summary.sequence_count = root.sequences()->size();
  summary.model_fingerprint = root.model_fingerprint();
  summary.profile_fingerprint = root.profile_fingerprint();
  for (const uint32_t bytes : *root.page_bytes()) summary.page_bytes += bytes;
  summary.model_name = read_text(root.model_name());
  summary.made_by = read_text(root.made_by());
  if (root.note() != nullptr) {
    const auto* const note = reinterpret_cast<const std::byte*>(root.note()->data());
    summary.note.assign(note, note + root.note()->size());
  }
  if (summary.sequence_count == 0) return summary;
  const file::SavedSequence& first = *root.sequences()->Get(0);
  summary.plan = read_text(first.policy()->plan());
  summary.tokens = first.token_count();
  summary.next_position = first.next_position();
  return summary;
}

}  // namespace foldkv
