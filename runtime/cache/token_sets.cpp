#include "runtime/cache/token_sets.h"

#include <algorithm>

#include "runtime/cache/eviction_needs.h"
#include "runtime/cache/token_pages.h"
#include "runtime/codec/latent_layout.h"

namespace foldkv {
namespace {

// Tokens are shared by all that agree in these.
struct SetKey {
  bool grouped = false;
  bool evicts = false;
  int32_t group = -1;  // of a profile, or of adjacent layers that decide together
  int32_t layer = -1;
  int32_t head = -1;

  bool operator==(const SetKey&) const = default;
};

class Builder {
 public:
  Builder(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy)
      : model_(model), profile_(profile), policy_(policy) {}

  TokenSets build() {
    for (int32_t layer = 0; layer < model_.layer_count(); ++layer) {
      result_.first_plane.push_back(static_cast<int32_t>(result_.planes.size()));
      if (profile_.source_of_layer[static_cast<size_t>(layer)] == layer) add_layer(layer);
    }
    result_.first_plane.push_back(static_cast<int32_t>(result_.planes.size()));
    add_latent_sets();
    return std::move(result_);
  }

 private:
  void add_layer(int32_t layer) {
    SetKey key;
    const GroupPlace place = profile_.place_of_layer[static_cast<size_t>(layer)];
    key.grouped = place.group >= 0;
    key.evicts = evicts(policy_, model_, layer);
    const auto heads = static_cast<int32_t>(model_.layer(layer).kv_heads);
    if (!key.evicts) return add_plane(key, layer, 0, heads);
    if (key.grouped) {
      key.group = place.group;
      return add_plane(key, layer, 0, heads);
    }
    switch (policy_.eviction->policy.selection.scope) {
      case SelectionScope::kGroup:
        key.group = layer / static_cast<int32_t>(policy_.eviction->layers_per_group);
        return add_plane(key, layer, 0, heads);
      case SelectionScope::kLayer: key.layer = layer; return add_plane(key, layer, 0, heads);
      case SelectionScope::kHead: break;
    }
    key.layer = layer;
    for (key.head = 0; key.head < heads; ++key.head) add_plane(key, layer, key.head, 1);
  }

  void add_plane(const SetKey& key, int32_t layer, int32_t first_head, int32_t head_count) {
    const backend::ExactLayout layout{kExactPageTokens, head_count * model_.layer(layer).head_size, policy_.format};
    result_.planes.push_back(
        {layer, first_head, head_count, layout, PageList(Role::kExact, kExactPageTokens, layout.page_bytes())});
    const size_t set = find_set(key);
    result_.exact[set].planes.push_back(static_cast<int32_t>(result_.planes.size()) - 1);
    result_.set_of_plane.push_back(static_cast<int32_t>(set));
  }

  size_t find_set(const SetKey& key) {
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    if (found != keys_.end()) return static_cast<size_t>(found - keys_.begin());
    keys_.push_back(key);
    const bool scored = key.evicts && remembers_scores(policy_.eviction->policy);
    result_.exact.push_back(
        {{}, key.grouped ? key.group : -1, key.grouped, key.evicts, {}, 0, token_pages(kExactPageTokens, scored)});
    return keys_.size() - 1;
  }

  void add_latent_sets() {
    const bool apart = policy_.eviction != nullptr;
    for (int32_t group = 0; group < std::ssize(profile_.groups); ++group) {
      if (group == 0 || apart) {
        result_.latent.push_back({{},
                                  exact_set_of(group),
                                  0,
                                  token_pages(kLatentPageTokens, apart && remembers_scores(policy_.eviction->policy))});
      }
      result_.latent.back().groups.push_back(group);
      result_.latent_of_group.push_back(static_cast<int32_t>(result_.latent.size()) - 1);
    }
  }

  // Of the first layer of a group; one that groups layers which read others has none of its own.
  int32_t exact_set_of(int32_t group) const {
    const int32_t layer = profile_.groups[static_cast<size_t>(group)].layers.front();
    return result_.set_of_plane[static_cast<size_t>(result_.first_plane[static_cast<size_t>(layer)])];
  }

  const Model& model_;
  const PreparedProfile& profile_;
  const SequencePolicy& policy_;
  TokenSets result_;
  std::vector<SetKey> keys_;
};

}  // namespace

TokenSets make_token_sets(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy) {
  return Builder(model, profile, policy).build();
}

}  // namespace foldkv
