#include "runtime/cache/observe_tokens.h"

#include <algorithm>
#include <vector>

#include "runtime/cache/exact_rows.h"

namespace foldkv {
namespace {

// Tokens copied at once, of all layers.
constexpr int64_t kObservedTokens = 256;

// Copies one side of every layer to the heap.
struct LayerRows {
  std::vector<std::vector<float>> numbers;
  std::vector<TensorView> views;
};

StatusOr<LayerRows> read_layers(const Sequence& sequence, backend::Side side, int64_t first, int64_t count) {
  LayerRows rows;
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) {
    const int64_t width = sequence.model().layer(layer).key_width();
    auto& numbers = rows.numbers.emplace_back(static_cast<size_t>(count * width));
    const MutableTensorView view{reinterpret_cast<std::byte*>(numbers.data()), NumberFormat::kF32, count, width,
                                 width};
    FOLDKV_RETURN_IF_ERROR(
        read_heads(sequence, layer, {0, sequence.model().layer(layer).kv_heads}, side, first, view));
    rows.views.push_back(view);
  }
  return rows;
}

}  // namespace

Status observe_tokens(const Sequence& sequence, int64_t first_token, int64_t count) {
  for (int64_t done = 0; done < count; done += kObservedTokens) {
    const int64_t tokens = std::min(kObservedTokens, count - done);
    const int64_t first = first_token + done;
    FOLDKV_ASSIGN_OR_RETURN(const LayerRows keys, read_layers(sequence, backend::Side::kKeys, first, tokens));
    FOLDKV_ASSIGN_OR_RETURN(const LayerRows values, read_layers(sequence, backend::Side::kValues, first, tokens));
    FOLDKV_RETURN_IF_ERROR(sequence.calibrator()->observe(keys.views, values.views, first));
  }
  return absl::OkStatus();
}

}  // namespace foldkv
