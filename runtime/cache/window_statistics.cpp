#include "runtime/cache/window_statistics.h"

#include <algorithm>

#include "runtime/base/checked.h"
#include "runtime/cache/step_scratch.h"

namespace foldkv {
namespace {

constexpr int64_t kNumberBytes = static_cast<int64_t>(sizeof(float));

// Which numbers a policy asks for.
struct Wanted {
  bool squares = false;
  bool maxima = false;
  bool below = false;
  bool entropies = false;

  explicit Wanted(const EvictionPolicy& policy) {
    const bool cake = policy.budget.layers == LayerAllocator::kCake;
    squares = cake || policy.scoring.rows == RowReduction::kMeanPlusVariance;
    maxima = policy.scoring.rows == RowReduction::kMaximum;
    below = policy.scoring.rows == RowReduction::kNegatedBelow;
    entropies = cake;
  }
  [[nodiscard]] int64_t count() const { return 1 + squares + maxima + below + entropies; }
};

// Memory of one layer: the lists of every number, [query heads][tokens] each, then the backend's.
struct Lists {
  float* sums = nullptr;
  float* squares = nullptr;
  float* maxima = nullptr;
  float* below = nullptr;
  float* entropies = nullptr;
  std::byte* workspace = nullptr;

  Lists(const Wanted& wanted, int64_t numbers, std::byte* memory) {
    const auto take = [&](bool used) {
      if (!used) return static_cast<float*>(nullptr);
      auto* const list = reinterpret_cast<float*>(memory);
      memory += round_up(numbers * kNumberBytes, kBlockAlignment);
      return list;
    };
    sums = take(true);
    squares = take(wanted.squares);
    maxima = take(wanted.maxima);
    below = take(wanted.below);
    entropies = take(wanted.entropies);
    workspace = memory;
  }
};

Status clear(backend::Backend& backend, float* list, int64_t numbers) {
  if (list == nullptr) return absl::OkStatus();
  const std::vector<float> zeros(static_cast<size_t>(numbers));
  return backend.copy_to_device(reinterpret_cast<std::byte*>(list), reinterpret_cast<const std::byte*>(zeros.data()),
                                numbers * kNumberBytes);
}

Status fetch(backend::Backend& backend, const float* list, int64_t numbers, std::vector<float>& target) {
  if (list == nullptr) return absl::OkStatus();
  target.resize(static_cast<size_t>(numbers));
  return backend.copy_to_host(reinterpret_cast<std::byte*>(target.data()), reinterpret_cast<const std::byte*>(list),
                              numbers * kNumberBytes);
}

// Weights of the rows that rise evenly from 1 to `newest`; empty: ones.
std::vector<float> row_weights(double newest, int64_t rows) {
  std::vector<float> weights;
  if (newest == 1.0) return weights;
  for (int64_t row = 0; row < rows; ++row) {
    const double place = rows > 1 ? static_cast<double>(row) / static_cast<double>(rows - 1) : 1.0;
    weights.push_back(static_cast<float>(1.0 + (newest - 1.0) * place));
  }
  return weights;
}

// Equal shares of the tokens that each row sees.
std::vector<float> thresholds(const WindowShape& shape) {
  std::vector<float> shares;
  for (int64_t row = 0; row < shape.rows; ++row) {
    shares.push_back(1.0f / static_cast<float>(shape.tokens - shape.rows + row + 1));
  }
  return shares;
}

}  // namespace

int64_t window_workspace(const backend::Backend& backend, const PreparedModel& model, const PreparedProfile& profile,
                         const SequencePolicy& policy, const WindowShape& shape) {
  if (policy.eviction == nullptr || shape.rows == 0) return 0;
  const Wanted wanted(policy.eviction->policy);
  int64_t bytes = 0;
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    backend::AttendShape attend = attend_shape(model, profile, policy.plan, layer);
    attend.rows = shape.rows;
    attend.sequences = 1;
    attend.total_tokens = shape.tokens;
    const int64_t lists = wanted.count() * round_up(attend.query_heads * shape.tokens * kNumberBytes, kBlockAlignment);
    bytes = std::max(bytes, lists + backend.score_workspace(attend));
  }
  return bytes;
}

StatusOr<TokenStatistics> window_statistics(const Sequence& sequence, const AttentionRecord& record, int64_t layer,
                                            const WindowShape& shape, const int32_t* positions, std::byte* workspace) {
  backend::Backend& backend = sequence.runtime().backend();
  const EvictionPolicy& policy = sequence.policy().eviction->policy;
  const backend::AttentionRules& rules = sequence.shared_model()->data.layers[static_cast<size_t>(layer)].rules;
  const int64_t numbers = rules.query_heads * shape.tokens;
  const Lists lists(Wanted(policy), numbers, workspace);
  for (float* list : {lists.sums, lists.squares, lists.maxima, lists.below, lists.entropies}) {
    FOLDKV_RETURN_IF_ERROR(clear(backend, list, numbers));
  }
  const std::vector<float> weights = row_weights(policy.scoring.newest_row_weight, shape.rows);
  const std::vector<float> shares = thresholds(shape);
  for (const ExactPlane& plane : sequence.storage().planes_of(layer)) {
    const int64_t before = plane.first_head * (rules.query_heads / rules.kv_heads) * shape.tokens;
    const auto of_view = [before](float* list) { return list == nullptr ? nullptr : list + before; };
    backend::ScoreRequest request;
    request.rules = rules;
    request.exact_layout = plane.layout;
    request.latent = sequence.latent_layer(layer);
    request.arithmetic = sequence.policy().arithmetic;
    request.sequence = sequence.attend_view(plane, layer, shape.tokens - sequence.storage().token_count());
    request.sequence.row_count = shape.rows;
    request.sequence.query_positions = positions;
    request.queries = record.window_queries(layer);
    request.log_sum_exp = record.window_log_sum_exp(layer);
    request.row_weights = weights.empty() ? nullptr : weights.data();
    request.thresholds = shares.data();
    request.sums = lists.sums + before;
    request.squares = of_view(lists.squares);
    request.maxima = of_view(lists.maxima);
    request.below = of_view(lists.below);
    request.entropies = of_view(lists.entropies);
    request.list_stride = shape.tokens;
    request.workspace = lists.workspace;
    FOLDKV_RETURN_IF_ERROR(backend.score(request));
  }
  TokenStatistics statistics;
  statistics.query_heads = rules.query_heads;
  statistics.kv_heads = rules.kv_heads;
  statistics.tokens = shape.tokens;
  statistics.rows = shape.rows;
  FOLDKV_RETURN_IF_ERROR(fetch(backend, lists.sums, numbers, statistics.sums));
  FOLDKV_RETURN_IF_ERROR(fetch(backend, lists.squares, numbers, statistics.squares));
  FOLDKV_RETURN_IF_ERROR(fetch(backend, lists.maxima, numbers, statistics.maxima));
  FOLDKV_RETURN_IF_ERROR(fetch(backend, lists.below, numbers, statistics.below));
  FOLDKV_RETURN_IF_ERROR(fetch(backend, lists.entropies, numbers, statistics.entropies));
  return statistics;
}

}  // namespace foldkv
