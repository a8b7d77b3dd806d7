#include "runtime/cache/step_scratch.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace foldkv {
namespace {

struct Widths {
  int64_t query = 0;
  int64_t key = 0;
  int64_t heads = 0;
};

Widths widest(const PreparedModel& model) {
  Widths widths;
  for (const PreparedLayer& layer : model.layers) {
    widths.query = std::max(widths.query, layer.rules.query_heads * layer.rules.head_size);
    widths.key = std::max(widths.key, layer.rules.kv_heads * layer.rules.head_size);
    widths.heads = std::max(widths.heads, layer.rules.query_heads);
  }
  return widths;
}

int64_t attend_bytes(const Runtime& runtime, const PreparedModel& model,
                     const std::vector<PlannedProfile>& profiles, const ScratchNeeds& needs) {
  int64_t bytes = 0;
  for (const auto& [profile, plan] : profiles) {
    for (size_t layer = 0; layer < model.layers.size(); ++layer) {
      backend::AttendShape shape = attend_shape(model, *profile, plan, layer);
      shape.rows = std::min(needs.rows, kRowBlock);
      shape.sequences = needs.views;
      shape.total_tokens = needs.total_tokens;
      bytes = std::max(bytes, runtime.backend().attend_workspace(shape));
      if (needs.records) bytes = std::max(bytes, runtime.backend().score_workspace(shape));
    }
  }
  return bytes;
}

}  // namespace

backend::AttendShape attend_shape(const PreparedModel& model, const PreparedProfile& profile, size_t plan,
                                  size_t layer) {
  const backend::AttentionRules& rules = model.layers[layer].rules;
  backend::AttendShape shape;
  shape.query_heads = rules.query_heads;
  shape.kv_heads = rules.kv_heads;
  shape.head_size = rules.head_size;
  const GroupPlace place = profile.place_of_layer[layer];
  if (place.group < 0) return shape;
  const backend::LatentLayout& layout = profile.groups[static_cast<size_t>(place.group)].layouts[plan];
  shape.key_latent_width = layout.keys.stored_width;
  shape.value_latent_width = layout.values.stored_width;
  shape.correction_rank = layout.correction_rank;
  return shape;
}

void ScratchNeeds::add_views(const SequenceStorage& storage, int64_t new_tokens) {
  views += most_views(storage);
  int64_t most_tokens = 0;
  for (int64_t layer = 0; layer < storage.layer_count(); ++layer) {
    int64_t tokens = 0;
    for (const ExactPlane& plane : storage.planes_of(layer)) {
      const ExactSet& set = storage.set_of(plane);
      tokens += set.token_count + new_tokens + (set.grouped ? storage.latent_tokens() : 0);
    }
    most_tokens = std::max(most_tokens, tokens);
  }
  total_tokens += most_tokens;
}

int64_t most_views(const SequenceStorage& storage) {
  size_t most = 0;
  for (int64_t layer = 0; layer < storage.layer_count(); ++layer) {
    most = std::max(most, storage.planes_of(layer).size());
  }
  return static_cast<int64_t>(most);
}

Status ProductSet::add(backend::Backend& backend, const backend::ProductShape& shape) {
  for (const auto& [known, product] : products_) {
    if (known == shape) return absl::OkStatus();
  }
  FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<backend::Product> made, backend.make_product(shape));
  products_.emplace_back(shape, std::move(made));
  return absl::OkStatus();
}

backend::Product& ProductSet::find(const backend::ProductShape& shape) const {
  const auto found = std::find_if(products_.begin(), products_.end(),
                                  [&](const auto& entry) { return entry.first == shape; });
  return *found->second;
}

int64_t ProductSet::workspace_bytes() const {
  int64_t bytes = 0;
  for (const auto& entry : products_) bytes = std::max(bytes, entry.second->workspace_bytes());
  return bytes;
}

backend::ProductShape product_shape(int64_t rows, const TensorView& weight, bool deterministic) {
  return {rows, weight.column_count, weight.row_count, weight.format, deterministic};
}

StatusOr<ProductSet> make_products(const Runtime& runtime, const Model& model, const ScratchNeeds& needs) {
  ProductSet products;
  const int64_t tail = needs.rows % kRowBlock;
  for (int64_t layer = 0; layer < model.layer_count(); ++layer) {
    const LayerWeights& weights = model.weights(layer);
    std::vector<const TensorView*> used;
    if (needs.hidden_input) used = {&weights.query, &weights.key, &weights.value};
    if (needs.projected_output) used.push_back(&weights.output);
    for (const TensorView* weight : used) {
      for (int64_t rows : {needs.rows >= kRowBlock ? kRowBlock : int64_t{0}, tail}) {
        if (rows == 0) continue;
        FOLDKV_RETURN_IF_ERROR(
            products.add(runtime.backend(), product_shape(rows, *weight, runtime.deterministic())));
      }
    }
  }
  return products;
}

ScratchPlan plan_scratch(const Runtime& runtime, const PreparedModel& model,
                         const std::vector<PlannedProfile>& profiles, const ProductSet& products,
                         const ScratchNeeds& needs) {
  ScratchPlan plan;
  plan.block_rows = std::min(needs.rows, kRowBlock);
  plan.tail_rows = needs.rows % kRowBlock;
  const Widths widths = widest(model);
  const int64_t hidden = model.model->hidden_size();
  int64_t offset = 0;
  const auto place = [&](int64_t bytes) {
    const int64_t start = offset;
    offset = round_up(offset + bytes, kBlockAlignment);
    return start;
  };
  const auto place_rows = [&](bool used, int64_t width) { return place(used ? plan.block_rows * width * 4 : 0); };
  plan.hidden = place_rows(needs.hidden_input, hidden);
  plan.query_raw = place_rows(needs.hidden_input, widths.query);
  plan.query = place_rows(true, widths.query);
  plan.query_plain = place_rows(needs.forecasts, widths.query);
  plan.key = place_rows(needs.hidden_input, widths.key);
  plan.value = place_rows(needs.hidden_input, widths.key);
  plan.context = place_rows(true, widths.query);
  plan.output = place_rows(needs.projected_output, hidden);
  plan.log_sum_exp = place_rows(true, widths.heads);
  plan.product_workspace = place(products.workspace_bytes());
  plan.attend_workspace = place(attend_bytes(runtime, model, profiles, needs));
  // What is written down outlives the rest: commit works on it in the place of the rest.
  plan.records = round_up(std::max(offset, needs.commit_bytes), kBlockAlignment);
  plan.bytes = plan.records + needs.record_bytes;
  return plan;
}

}  // namespace foldkv
