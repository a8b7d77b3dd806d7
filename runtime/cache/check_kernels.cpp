#include "runtime/cache/check_kernels.h"

namespace foldkv {

Status check_kernels(const backend::Backend& backend, const PreparedModel& model, const PreparedProfile& profile,
                     size_t plan) {
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    const GroupPlace place = profile.place_of_layer[layer];
    const backend::LatentLayout* layout =
        place.group < 0 ? nullptr : &profile.groups[static_cast<size_t>(place.group)].layouts[plan];
    const Status status = backend.check_attention(model.layers[layer].rules, layout);
    if (!status.ok()) return with_argument(status, absl::StrCat("layers[", layer, "]"));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
