#include "runtime/cache/device_copy.h"
#include "runtime/cache/sequence.h"

namespace foldkv {
namespace {

Status copy_pages(backend::Backend& backend, const PageList& to, const PageList& from) {
  for (int64_t page = 0; page < from.page_count(); ++page) {
    FOLDKV_RETURN_IF_ERROR(copy_on_device(backend, to.pages()[page], from.pages()[page], from.page_bytes()));
  }
  return absl::OkStatus();
}

Status copy_block(backend::Backend& backend, const Block& to, const Block& from) {
  return from ? copy_on_device(backend, to.data(), from.data(), from.charged_bytes()) : absl::OkStatus();
}

// Another block with the same contents; none for none.
StatusOr<Block> copy_of(Runtime& runtime, const Block& block) {
  if (!block) return Block();
  FOLDKV_ASSIGN_OR_RETURN(Block copy, Block::allocate(runtime.arena(), Role::kPositions, block.charged_bytes()));
  FOLDKV_RETURN_IF_ERROR(copy_block(runtime.backend(), copy, block));
  return copy;
}

Status copy_contents(backend::Backend& backend, const SequenceStorage& to, const SequenceStorage& from) {
  for (size_t index = 0; index < from.exact_sets().size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(copy_pages(backend, to.exact_sets()[index].tokens, from.exact_sets()[index].tokens));
  }
  for (size_t index = 0; index < from.planes().size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(copy_pages(backend, to.planes()[index].pages, from.planes()[index].pages));
  }
  for (size_t index = 0; index < from.latent_sets().size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(copy_pages(backend, to.latent_sets()[index].tokens, from.latent_sets()[index].tokens));
  }
  for (size_t index = 0; index < from.groups().size(); ++index) {
    const GroupStorage& target = to.groups()[index];
    const GroupStorage& source = from.groups()[index];
    FOLDKV_RETURN_IF_ERROR(copy_pages(backend, target.pages, source.pages));
    FOLDKV_RETURN_IF_ERROR(copy_block(backend, target.key_mean, source.key_mean));
    FOLDKV_RETURN_IF_ERROR(copy_block(backend, target.value_mean, source.value_mean));
    FOLDKV_RETURN_IF_ERROR(copy_block(backend, target.correction_basis, source.correction_basis));
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      FOLDKV_RETURN_IF_ERROR(copy_block(backend, target.bases(side).basis, source.bases(side).basis));
      FOLDKV_RETURN_IF_ERROR(copy_block(backend, target.bases(side).projection, source.bases(side).projection));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<Sequence>> Sequence::fork() const {
  if (busy_.load()) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  std::shared_ptr<Sequence> copy(new Sequence(runtime_, model_, profile_, policy_));
  FOLDKV_RETURN_IF_ERROR(copy->storage_.reserve_copy(runtime_->arena(), storage_));
  FOLDKV_RETURN_IF_ERROR(copy_contents(runtime_->backend(), copy->storage_, storage_));
  FOLDKV_ASSIGN_OR_RETURN(copy->window_.memory, copy_of(*runtime_, window_.memory));
  copy->window_.rows = window_.rows;
  FOLDKV_ASSIGN_OR_RETURN(copy->moments_.memory, copy_of(*runtime_, moments_.memory));
  copy->moments_.rows = moments_.rows;
  copy->next_position_ = next_position_;
  copy->prompt_open_ = prompt_open_;
  copy->energies_ = energies_;
  return copy;
}

}  // namespace foldkv
