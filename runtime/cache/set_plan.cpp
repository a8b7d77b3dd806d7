#include <algorithm>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/base/checked.h"
#include "runtime/cache/check_kernels.h"
#include "runtime/cache/reencode.h"
#include "runtime/cache/sequence.h"
#include "runtime/codec/latent_layout.h"

namespace foldkv {

Status Sequence::set_plan(size_t plan) {
  const PreparedProfile& profile = profile_->data;
  if (profile.groups.empty()) return state_error("the sequence has no profile, and so no plans");
  FOLDKV_RETURN_IF_ERROR(begin_change());
  const absl::Cleanup end = [this] {
    runtime_->arena().give_back();
    end_change();
  };
  if (plan == policy_.plan) return absl::OkStatus();
  for (const PreparedGroup& group : profile.groups) {
    if (group.kind != GroupKind::kLearned) return unsupported_error("a codec without calibration has one plan only");
  }
  FOLDKV_RETURN_IF_ERROR(check_kernels(runtime_->backend(), model_->data, profile, plan));
  return runtime_->with_room([&]() -> Status {
    Arena& arena = runtime_->arena();
    std::vector<PageList> lists = storage_.latent_lists(profile, plan);
    const absl::Cleanup release = [&] {
      for (PageList& list : lists) list.shrink(arena, 0);
    };
    for (int64_t group = 0; group < std::ssize(lists); ++group) {
      PageList& list = lists[static_cast<size_t>(group)];
      FOLDKV_RETURN_IF_ERROR(list.grow(arena, storage_.latent_tokens(group)));
      FOLDKV_RETURN_IF_ERROR(reencode(*this, group, plan, list));
    }
    storage_.set_plan(plan, lists);
    policy_.plan = plan;
    return absl::OkStatus();
  });
}

Reclaimable Sequence::reclaimable() const {
  Reclaimable result;
  const std::lock_guard<std::mutex> lock(residency_);
  const Arena& arena = runtime_->arena();
  int64_t window = 0;
  for (const Block* block : {&window_.memory, &moments_.memory})
    window += block->charged_bytes() - block->shared_bytes();
  result.release = storage_.ledger().total() - storage_.shared_bytes(arena) + window;
  if (spilled()) return result;
  storage_.for_each_list(
      [&](const PageList& list, int64_t) { result.spill += list.bytes() - list.shared_bytes(arena); });
  const int64_t encoded = encode_count(
      policy_, {storage_.grouped_exact_tokens(), storage_.latent_tokens() > 0, true, storage_.run_tokens()});
  if (encoded > 0) result.compress = std::max<int64_t>(0, storage_.bytes_freed_by_encoding(encoded));
  const PreparedProfile& profile = profile_->data;
  if (profile.groups.empty() || profile.groups.front().kind != GroupKind::kLearned) return result;
  int64_t least = -1;
  for (size_t plan = 0; plan < profile.groups.front().layouts.size(); ++plan) {
    int64_t bytes = 0;
    for (int64_t group = 0; group < std::ssize(profile.groups); ++group) {
      const backend::LatentLayout& layout = profile.groups[static_cast<size_t>(group)].layouts[plan];
      bytes += divide_up(storage_.latent_tokens(group), layout.page_tokens) * block_bytes(layout.page_bytes);
    }
    if (least >= 0 && bytes >= least) continue;
    least = bytes;
    result.smallest_plan = plan;
  }
  int64_t own = 0;
  for (const GroupStorage& group : storage_.groups()) own += group.pages.bytes() - group.pages.shared_bytes(arena);
  result.plan = std::max<int64_t>(0, own - least);
  result.plan_room = least + reencode_bytes(*this, result.smallest_plan);
  return result;
}

}  // namespace foldkv
