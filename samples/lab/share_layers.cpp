#include "samples/lab/share_layers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}

double cosine_of(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0, square_a = 0, square_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    square_a += double{a[i]} * a[i];
    square_b += double{b[i]} * b[i];
  }
  return square_a > 0 && square_b > 0 ? product / std::sqrt(square_a * square_b) : 0;
}

// Adds one side of a layer's cache, keys as attention sees them, to a running sum.
absl::Status add_side(const foldkv::Sequence& sequence, int64_t tokens, const ModelShape& shape, int32_t layer,
                      int32_t side, std::vector<double>* sum) {
  std::vector<float> rows(static_cast<size_t>(tokens * shape.kv_width()));
  foldkv_rebuild_options options = foldkv::init<foldkv_rebuild_options>();
  options.layer = layer;
  options.side = side;
  options.rotated = 1;
  const foldkv_tensor output = foldkv::tensor(rows.data(), {tokens, shape.kv_heads, shape.head_size});
  LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("reading layer ", layer), sequence.rebuild(options, output));
  sum->resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) (*sum)[i] += double{rows[i]};
  return absl::OkStatus();
}

// Runs all samples: the final hidden state of each one's last token, and, when asked for, the sums of the caches.
absl::StatusOr<std::vector<std::vector<float>>> final_states(FoldkvHost& host, const foldkv::Profile* profile,
                                                             const std::vector<TextSample>& samples,
                                                             std::vector<MeanCache>* caches) {
  FoldkvAttention::Options options;
  options.sequence.dtype = FOLDKV_F32;
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> attention,
                       FoldkvAttention::create(host, profile, options));
  Decoder decoder(host.model(), *attention, host.threads());
  std::vector<std::vector<float>> states;
  std::vector<float> logits;
  for (const TextSample& sample : samples) {
    LAB_RETURN_IF_ERROR(attention->clear());
    LAB_RETURN_IF_ERROR(decoder.feed(sample.tokens, 1, &logits));
    states.push_back(decoder.final_hidden_state());
    if (caches == nullptr) continue;
    for (int32_t layer = 0; layer < static_cast<int32_t>(caches->size()); ++layer) {
      MeanCache& cache = (*caches)[static_cast<size_t>(layer)];
      const auto tokens = static_cast<int64_t>(sample.tokens.size());
      const ModelShape& shape = host.model().shape;
      LAB_RETURN_IF_ERROR(add_side(attention->sequence(), tokens, shape, layer, FOLDKV_KEYS, &cache.keys));
      LAB_RETURN_IF_ERROR(add_side(attention->sequence(), tokens, shape, layer, FOLDKV_VALUES, &cache.values));
    }
  }
  return states;
}

}  // namespace

std::vector<LayerPair> rank_layer_pairs(const std::vector<MeanCache>& caches) {
  std::vector<LayerPair> pairs;
  for (int32_t layer = 1; layer < static_cast<int32_t>(caches.size()); ++layer) {
    for (int32_t source = 0; source < layer; ++source) {
      const MeanCache& a = caches[static_cast<size_t>(source)];
      const MeanCache& b = caches[static_cast<size_t>(layer)];
      pairs.push_back({source, layer, (distance_of(a.keys, b.keys) + distance_of(a.values, b.values)) / 2});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const LayerPair& a, const LayerPair& b) { return a.distance > b.distance; });
  return pairs;
}

absl::StatusOr<std::vector<int32_t>> choose_sharing(
    int32_t layer_count, const std::vector<LayerPair>& pairs, const SharingOptions& options,
    absl::FunctionRef<absl::StatusOr<double>(const std::vector<int32_t>& sources)> similarity) {
  std::vector<int32_t> sources(static_cast<size_t>(layer_count));
  std::iota(sources.begin(), sources.end(), 0);
  int64_t shared = 0;
  for (const LayerPair& pair : pairs) {
    if (shared == options.layers) break;
    if (sources[static_cast<size_t>(pair.layer)] != pair.layer) continue;
    std::vector<int32_t> tried = sources;
    std::replace(tried.begin(), tried.end(), pair.layer, sources[static_cast<size_t>(pair.source)]);
    LAB_ASSIGN_OR_RETURN(const double cosine, similarity(tried));
    if (cosine <= options.threshold) continue;
    sources = std::move(tried);
    ++shared;
  }
  if (shared == options.layers) return sources;
  return absl::FailedPreconditionError(absl::StrCat("only ", shared, " of ", options.layers,
                                                    " layers can share above a similarity of ", options.threshold));
}

absl::StatusOr<std::vector<int32_t>> share_layers(FoldkvHost& host, const std::vector<TextSample>& samples,
                                                  const SharingOptions& options,
                                                  absl::FunctionRef<void(int64_t)> progress) {
  std::vector<MeanCache> caches(static_cast<size_t>(host.model().shape.layer_count));
  LAB_ASSIGN_OR_RETURN(const auto reference, final_states(host, nullptr, samples, &caches));
  const auto count = static_cast<double>(samples.size());
  for (MeanCache& cache : caches) {
    for (double& number : cache.keys) number /= count;
    for (double& number : cache.values) number /= count;
  }
  int64_t tried = 0;
  const auto similarity = [&](const std::vector<int32_t>& sources) -> absl::StatusOr<double> {
    LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile, sharing_profile(host, sources));
    LAB_ASSIGN_OR_RETURN(const auto states, final_states(host, &profile, samples, nullptr));
    double sum = 0;
    for (size_t i = 0; i < states.size(); ++i) sum += cosine_of(reference[i], states[i]);
    progress(++tried);
    return sum / count;
  };
  return choose_sharing(static_cast<int32_t>(caches.size()), rank_layer_pairs(caches), options, similarity);
}

absl::StatusOr<foldkv::Profile> sharing_profile(const FoldkvHost& host, const std::vector<int32_t>& sources) {
  foldkv_codec_options options = foldkv::init<foldkv_codec_options>();
  options.codec = FOLDKV_CODEC_KVSHARER;
  options.sources = sources.data();
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, "sharing layers",
                              foldkv::Profile::from_codec(host.foldkv_model(), options));
  return profile;
}

}  // namespace foldkv_lab
