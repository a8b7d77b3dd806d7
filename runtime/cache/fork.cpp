#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/cache/sequence.h"

namespace foldkv {
namespace {

// Copies device memory to device memory, by way of a bounded host buffer where the device has memory of its own.
class Copier {
 public:
  explicit Copier(backend::Backend& backend) : backend_(backend) {}

  [[nodiscard]] Status copy(std::byte* to, const std::byte* from, int64_t bytes) {
    if (backend_.host_memory()) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return absl::OkStatus();
    }
    constexpr int64_t kBufferBytes = int64_t{1} << 20;
    buffer_.resize(static_cast<size_t>(std::min(kBufferBytes, std::max(bytes, std::ssize(buffer_)))));
    for (int64_t done = 0; done < bytes; done += kBufferBytes) {
      const int64_t piece = std::min(kBufferBytes, bytes - done);
      FOLDKV_RETURN_IF_ERROR(backend_.copy_to_host(buffer_.data(), from + done, piece));
      FOLDKV_RETURN_IF_ERROR(backend_.copy_to_device(to + done, buffer_.data(), piece));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] Status copy(const PageList& to, const PageList& from) {
    for (int64_t page = 0; page < from.page_count(); ++page) {
      FOLDKV_RETURN_IF_ERROR(copy(to.pages()[page], from.pages()[page], from.page_bytes()));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] Status copy(const Block& to, const Block& from) {
    return from ? copy(to.data(), from.data(), from.charged_bytes()) : absl::OkStatus();
  }

 private:
  backend::Backend& backend_;
  std::vector<std::byte> buffer_;
};

Status copy_contents(Copier& copier, const SequenceStorage& to, const SequenceStorage& from, int64_t layer_count) {
  for (size_t index = 0; index < from.sets().size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(copier.copy(to.sets()[index].positions, from.sets()[index].positions));
  }
  for (int64_t layer = 0; layer < layer_count; ++layer) {
    if (!from.stores(layer)) continue;
    FOLDKV_RETURN_IF_ERROR(copier.copy(to.exact_pages(layer), from.exact_pages(layer)));
  }
  FOLDKV_RETURN_IF_ERROR(copier.copy(to.latent_positions(), from.latent_positions()));
  for (size_t index = 0; index < from.groups().size(); ++index) {
    const GroupStorage& target = to.groups()[index];
    const GroupStorage& source = from.groups()[index];
    FOLDKV_RETURN_IF_ERROR(copier.copy(target.pages, source.pages));
    FOLDKV_RETURN_IF_ERROR(copier.copy(target.key_mean, source.key_mean));
    FOLDKV_RETURN_IF_ERROR(copier.copy(target.value_mean, source.value_mean));
    FOLDKV_RETURN_IF_ERROR(copier.copy(target.correction_basis, source.correction_basis));
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      FOLDKV_RETURN_IF_ERROR(copier.copy(target.bases(side).basis, source.bases(side).basis));
      FOLDKV_RETURN_IF_ERROR(copier.copy(target.bases(side).projection, source.bases(side).projection));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<Sequence>> Sequence::fork() const {
  if (busy_.load()) return with_argument(state_error("the sequence is part of an open step"), "sequence");
  std::shared_ptr<Sequence> copy(new Sequence(runtime_, model_, profile_, policy_));
  FOLDKV_RETURN_IF_ERROR(copy->storage_.reserve_copy(runtime_->arena(), storage_));
  Copier copier(runtime_->backend());
  FOLDKV_RETURN_IF_ERROR(copy_contents(copier, copy->storage_, storage_, model().layer_count()));
  copy->next_position_ = next_position_;
  copy->prompt_open_ = prompt_open_;
  copy->energies_ = energies_;
  return copy;
}

}  // namespace foldkv
