#include "runtime/calibration/layer_groups.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "runtime/base/check_range.h"
#include "runtime/model/limits.h"

namespace foldkv {
namespace {

Status check_width(absl::string_view argument, const Model& model, const LayerGroup& group) {
  const int64_t key_width = model.layer(group.front()).key_width();
  if (key_width <= kMaxWidth / std::ssize(group)) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(group.size(), " layers with a key width of ", key_width,
                                               " are too wide for one group, expected ", kMaxWidth, " at most"));
}

// Marks the group's layers as taken.
Status check_group(const std::string& field, const Model& model, const LayerGroup& group, std::vector<bool>& taken) {
  if (group.empty()) return argument_error(field, absl::StrCat(field, ": got none, expected 1 or more"));
  for (size_t index = 0; index < group.size(); ++index) {
    const std::string name = absl::StrCat(field, "[", index, "]");
    const int32_t layer = group[index];
    FOLDKV_RETURN_IF_ERROR(check_range(name, layer, 0, model.layer_count() - 1));
    if (index > 0 && layer <= group[index - 1]) {
      return argument_error(
          name, absl::StrCat(name, ": got ", layer, ", expected more than ", group[index - 1], ", the layer before"));
    }
    if (taken[static_cast<size_t>(layer)]) {
      return argument_error(name, absl::StrCat(name, ": got ", layer, ", which is in an earlier group already"));
    }
    if (!model.layer(layer).same_kind(model.layer(group[0]))) {
      return argument_error(name, absl::StrCat(name, ": layers ", group[0], " and ", layer, " are of different kinds ",
                                               "(KV heads, head size, rotation, window or key norm)"));
    }
    taken[static_cast<size_t>(layer)] = true;
  }
  return check_width(field, model, group);
}

}  // namespace

StatusOr<std::vector<LayerGroup>> make_layer_groups(const Model& model, int32_t layers_per_group) {
  FOLDKV_RETURN_IF_ERROR(check_range("layers_per_group", layers_per_group, 1, kMaxLayers));
  std::vector<LayerGroup> groups;
  for (int32_t layer = 0; layer < model.layer_count(); ++layer) {
    const LayerRules& rules = model.layer(layer);
    if (rules.window > 0) continue;
    const bool joins = !groups.empty() && std::ssize(groups.back()) < layers_per_group &&
                       model.layer(groups.back().back()).same_kind(rules);
    if (!joins) groups.emplace_back();
    groups.back().push_back(layer);
  }
  if (groups.empty()) return argument_error("model", "every layer has a window, so that there is nothing to calibrate");
  for (const LayerGroup& group : groups) FOLDKV_RETURN_IF_ERROR(check_width("layers_per_group", model, group));
  return groups;
}

StatusOr<std::vector<LayerGroup>> check_layer_groups(const Model& model, std::vector<LayerGroup> groups) {
  if (groups.empty()) return argument_error("groups", "groups: got none, expected 1 or more");
  std::vector<bool> taken(static_cast<size_t>(model.layer_count()));
  for (size_t index = 0; index < groups.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(check_group(absl::StrCat("groups[", index, "].layers"), model, groups[index], taken));
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace foldkv
