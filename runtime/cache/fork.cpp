#include "runtime/cache/sequence.h"

namespace foldkv {

StatusOr<std::shared_ptr<Sequence>> Sequence::fork() const {
  const Reader reader(*this);
  FOLDKV_RETURN_IF_ERROR(reader.between_steps());
  std::shared_ptr<Sequence> copy(new Sequence(runtime_, model_, profile_, policy_));
  copy->storage_.share(runtime_->arena(), storage_);
  copy->window_ = {window_.memory.share(), window_.room, window_.rows};
  copy->moments_ = {moments_.memory.share(), moments_.rows};
  copy->life_ = life_;
  return copy;
}

}  // namespace foldkv
