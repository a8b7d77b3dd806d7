#include "samples/lab/measure_sensitivity.h"

#include <memory>
#include <utility>

#include "samples/lab/aligned_buffer.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/forked_runs.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

// The layers of every group.
absl::StatusOr<std::vector<std::vector<int32_t>>> groups_of(const foldkv::Profile& profile) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  std::vector<std::vector<int32_t>> groups;
  for (int32_t group = 0; group < info.group_count; ++group) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(std::vector<int32_t> layers, "reading layers", profile.layers(group));
    groups.push_back(std::move(layers));
  }
  return groups;
}

class Measuring {
 public:
  Measuring(FoldkvHost& host, const SensitivityOptions& options, foldkv::Sensitivity& sums, std::vector<double>& groups,
            absl::FunctionRef<void(int64_t)> progress)
      : host_(host), options_(options), sums_(sums), groups_(groups), progress_(progress) {}

  absl::Status add(const TextSample& text, int64_t example) {
    LAB_ASSIGN_OR_RETURN(const ForkedRuns runs,
                         ForkedRuns::create(host_, options_.attention, text.tokens, options_.prefix));
    for (int32_t layer = 0; layer < host_.model().shape.layer_count; ++layer) {
      if (options_.keys) LAB_RETURN_IF_ERROR(add_layer(runs, example, layer, FOLDKV_KEYS));
      LAB_RETURN_IF_ERROR(add_layer(runs, example, layer, FOLDKV_VALUES));
    }
    return options_.groups_plan.empty() ? absl::OkStatus() : add_groups(runs, text);
  }

 private:
  absl::Status add_layer(const ForkedRuns& runs, int64_t example, int32_t layer, int32_t side) {
    auto question = foldkv::init<foldkv_perturb_options>();
    question.layer = layer;
    question.keys = side == FOLDKV_KEYS ? 1 : 0;
    question.scale = options_.scale;
    question.seed = options_.seed;
    question.example = example;
    LAB_ASSIGN_OR_RETURN(const std::vector<float> logits, runs.run([&](foldkv::Sequence& fork) -> absl::Status {
      LAB_RETURN_IF_FOLDKV_ERROR("perturbing a layer", fork.perturb(question));
      return absl::OkStatus();
    }));
    const int64_t vocabulary = host_.model().shape.vocabulary_size;
    const auto tensor = [&](const std::vector<float>& rows) {
      return foldkv::tensor(rows.data(), {runs.rest_count(), vocabulary});
    };
    LAB_RETURN_IF_FOLDKV_ERROR("comparing predictions",
                               sums_.add(layer, side, tensor(runs.reference()), tensor(logits)));
    progress_(++done_);
    return absl::OkStatus();
  }

  absl::Status add_groups(const ForkedRuns& runs, const TextSample& text) {
    LAB_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> groups, groups_of(*options_.profile));
    LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> compressed, compress_prefix(text));
    groups_.resize(2 * groups.size());
    for (size_t group = 0; group < groups.size(); ++group) {
      for (const int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
        LAB_ASSIGN_OR_RETURN(const std::vector<float> logits, runs.run([&](foldkv::Sequence& fork) {
          return copy_rows(compressed->sequence(), groups[group], side, fork);
        }));
        LAB_ASSIGN_OR_RETURN(const double divergence, runs.divergence_of(logits));
        groups_[2 * group + static_cast<size_t>(side)] += divergence;
        progress_(++done_);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FoldkvAttention>> compress_prefix(const TextSample& text) {
    FoldkvAttention::Options options = options_.attention;
    options.plan = options_.groups_plan;
    options.sequence.dtype = FOLDKV_F32;
    LAB_ASSIGN_OR_RETURN(std::unique_ptr<FoldkvAttention> attention,
                         FoldkvAttention::create(host_, options_.profile, options));
    std::vector<float> no_logits;
    const std::span<const Token> tokens(text.tokens);
    LAB_RETURN_IF_ERROR(Decoder(host_.model(), *attention, host_.threads())
                            .feed(tokens.first(static_cast<size_t>(options_.prefix)), 0, &no_logits));
    return attention;
  }

  // Puts what `from` rebuilds of one side of these layers into `to`.
  absl::Status copy_rows(const foldkv::Sequence& from, const std::vector<int32_t>& layers, int32_t side,
                         foldkv::Sequence& to) {
    const ModelShape& shape = host_.model().shape;
    FloatBuffer rows(options_.prefix * shape.kv_width());
    const foldkv_tensor tensor = foldkv::tensor(rows.data(), {options_.prefix, shape.kv_heads, shape.head_size});
    for (const int32_t layer : layers) {
      auto source = foldkv::init<foldkv_rebuild_options>();
      source.layer = layer;
      source.side = side;
      LAB_RETURN_IF_FOLDKV_ERROR("rebuilding a layer", from.rebuild(source, tensor));
      auto target = foldkv::init<foldkv_replace_options>();
      target.layer = layer;
      target.side = side;
      LAB_RETURN_IF_FOLDKV_ERROR("replacing a layer", to.replace(target, tensor));
    }
    return absl::OkStatus();
  }

  FoldkvHost& host_;
  const SensitivityOptions& options_;
  foldkv::Sensitivity& sums_;
  std::vector<double>& groups_;
  absl::FunctionRef<void(int64_t)> progress_;
  int64_t done_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> runs_of_text(const FoldkvHost& host, const SensitivityOptions& options) {
  const int64_t layers = host.model().shape.layer_count * (options.keys ? 2 : 1);
  if (options.groups_plan.empty()) return layers;
  LAB_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> groups, groups_of(*options.profile));
  return layers + 2 * static_cast<int64_t>(groups.size());
}

absl::StatusOr<SensitivityMeasurement> measure_sensitivity(FoldkvHost& host, const std::vector<TextSample>& texts,
                                                           const SensitivityOptions& options,
                                                           absl::FunctionRef<void(int64_t)> progress) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Sensitivity layers, "measuring sensitivities",
                              foldkv::Sensitivity::create(host.foldkv_model()));
  SensitivityMeasurement result{std::move(layers), {}};
  Measuring measuring(host, options, result.layers, result.groups, progress);
  for (size_t text = 0; text < texts.size(); ++text) {
    LAB_RETURN_IF_ERROR(measuring.add(texts[text], options.first_example + static_cast<int64_t>(text)));
  }
  for (double& divergence : result.groups) divergence /= static_cast<double>(texts.size());
  return result;
}

}  // namespace foldkv_lab
