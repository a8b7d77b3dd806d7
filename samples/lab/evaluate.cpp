#include "samples/lab/evaluate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/cache_run.h"
#include "samples/lab/divergence.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/stopwatch.h"

namespace foldkv_lab {
namespace {

// Sums over positions; means are taken at the end.
struct Sums {
  int64_t windows = 0;
  int64_t positions = 0;
  int64_t targets = 0;
  int64_t same_top = 0;
  double kl = 0;
  double full_loss = 0;
  double compressed_loss = 0;
  EnergyShares energy;
  std::vector<double> window_kl;
};

EvaluationFigures means_of(const Sums& sums) {
  const double positions = static_cast<double>(sums.positions);
  const double targets = static_cast<double>(std::max<int64_t>(sums.targets, 1));
  return {sums.windows,
          sums.positions,
          sums.kl / positions,
          static_cast<double>(sums.same_top) / positions,
          sums.full_loss / targets,
          sums.compressed_loss / targets,
          sums.energy * (1.0 / static_cast<double>(sums.windows)),
          sums.window_kl};
}

EvaluationFigures mean_of_texts(const std::vector<std::pair<std::string, EvaluationFigures>>& texts) {
  EvaluationFigures mean;
  const double share = 1.0 / static_cast<double>(texts.size());
  for (const auto& [name, figures] : texts) {
    mean.windows += figures.windows;
    mean.positions += figures.positions;
    mean.kl += figures.kl * share;
    mean.top1_agreement += figures.top1_agreement * share;
    mean.full_loss += figures.full_loss * share;
    mean.compressed_loss += figures.compressed_loss * share;
    mean.energy += figures.energy * share;
    mean.window_kl.insert(mean.window_kl.end(), figures.window_kl.begin(), figures.window_kl.end());
  }
  return mean;
}

absl::Status add_window(std::span<const Token> rest, const std::vector<float>& full,
                        const std::vector<float>& compressed, int64_t vocabulary, Sums* sums) {
  const size_t width = static_cast<size_t>(vocabulary);
  const double kl_before = sums->kl;
  for (size_t i = 0; i < rest.size(); ++i) {
    const int64_t target = i + 1 < rest.size() ? rest[i + 1] : -1;
    LAB_ASSIGN_OR_RETURN(const Divergence divergence,
                         compare_logits<float>(std::span(full).subspan(i * width, width),
                                               std::span(compressed).subspan(i * width, width), target));
    sums->kl += divergence.kl;
    sums->same_top += divergence.same_top ? 1 : 0;
    sums->full_loss += divergence.reference_loss;
    sums->compressed_loss += divergence.perturbed_loss;
    sums->targets += target >= 0 ? 1 : 0;
    ++sums->positions;
  }
  sums->window_kl.push_back((sums->kl - kl_before) / static_cast<double>(rest.size()));
  ++sums->windows;
  return absl::OkStatus();
}

absl::Status check_windows(const std::vector<TextSample>& windows, const EvaluationOptions& options) {
  if (windows.empty()) return absl::InvalidArgumentError("there is no window to evaluate");
  const int64_t length = static_cast<int64_t>(windows[0].tokens.size());
  if (options.prefix < 1 || options.prefix >= length || options.feed < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a prefix of ", options.prefix, " in windows of ", length,
                                                   " tokens, fed by ", options.feed,
                                                   "; expected a prefix inside the window and steps of at least 1"));
  }
  for (const TextSample& window : windows) {
    if (static_cast<int64_t>(window.tokens.size()) != length) {
      return absl::InvalidArgumentError("windows differ in length");
    }
  }
  return absl::OkStatus();
}

Sums& sums_of_text(std::vector<std::pair<std::string, Sums>>* texts, const std::string& name) {
  for (auto& [text, sums] : *texts) {
    if (text == name) return sums;
  }
  return texts->emplace_back(name, Sums()).second;
}

// One window, and what the full cache said of the tokens after the prefix.
struct Reference {
  const TextSample* window;
  std::span<const Token> prefix;
  std::span<const Token> rest;
  std::vector<float> logits;
};

// A codec on its way through the windows. It keeps no tokens between them: many codecs share one budget.
class CodecRun {
 public:
  [[nodiscard]] static absl::StatusOr<CodecRun> create(FoldkvHost& host, const Codec& codec) {
    LAB_ASSIGN_OR_RETURN(std::unique_ptr<FoldkvAttention> attention,
                         FoldkvAttention::create(host, codec.profile, codec.options));
    return CodecRun(host, codec, std::move(attention));
  }

  [[nodiscard]] absl::Status add(const Reference& reference, int64_t step, std::vector<float>* logits) {
    const Stopwatch stopwatch;
    LAB_RETURN_IF_ERROR(run_.begin(reference.prefix));
    LAB_ASSIGN_OR_RETURN(result_.bytes.after_prefix, attention_->stats());
    LAB_RETURN_IF_ERROR(run_.feed(reference.rest, step, logits));
    LAB_ASSIGN_OR_RETURN(result_.bytes.after_window, attention_->stats());
    result_.seconds += stopwatch.seconds();
    LAB_RETURN_IF_ERROR(run_.clear());
    Sums& sums = sums_of_text(&texts_, reference.window->source);
    sums.energy += measured_energy(result_.bytes.after_prefix);
    result_.expected_energy = expected_energy(result_.bytes.after_prefix);
    return add_window(reference.rest, reference.logits, *logits, vocabulary_, &sums);
  }

  [[nodiscard]] CodecEvaluation finish() && {
    for (const auto& [name, sums] : texts_) result_.texts.emplace_back(name, means_of(sums));
    result_.all = mean_of_texts(result_.texts);
    return std::move(result_);
  }

 private:
  CodecRun(FoldkvHost& host, const Codec& codec, std::unique_ptr<FoldkvAttention> attention)
      : vocabulary_(host.model().shape.vocabulary_size),
        attention_(std::move(attention)),
        run_(host.model(), *attention_, host.threads()) {
    result_.codec = codec.name;
  }

  int64_t vocabulary_;
  std::unique_ptr<FoldkvAttention> attention_;
  CacheRun run_;
  std::vector<std::pair<std::string, Sums>> texts_;
  CodecEvaluation result_;
};

}  // namespace

double EvaluationFigures::full_perplexity() const { return std::exp(full_loss); }
double EvaluationFigures::compressed_perplexity() const { return std::exp(compressed_loss); }

absl::StatusOr<Evaluation> evaluate(FoldkvHost& host, const std::vector<Codec>& codecs,
                                    const std::vector<TextSample>& windows, const EvaluationOptions& options,
                                    absl::FunctionRef<void(int64_t)> progress) {
  LAB_RETURN_IF_ERROR(check_codecs(codecs));
  LAB_RETURN_IF_ERROR(check_windows(windows, options));
  const Model& model = host.model();
  FullAttention full_attention(model, CacheFormat::kF32, static_cast<int64_t>(windows[0].tokens.size()),
                               host.threads());
  CacheRun full(model, full_attention, host.threads());
  std::vector<CodecRun> runs;
  runs.reserve(codecs.size());
  for (const Codec& codec : codecs) {
    LAB_ASSIGN_OR_RETURN(CodecRun run, CodecRun::create(host, codec));
    runs.push_back(std::move(run));
  }
  Evaluation result;
  std::vector<float> logits;
  int64_t runs_done = 0;
  for (const TextSample& window : windows) {
    const std::span<const Token> tokens(window.tokens);
    const size_t prefix = static_cast<size_t>(options.prefix);
    Reference reference{&window, tokens.first(prefix), tokens.subspan(prefix), {}};
    const Stopwatch stopwatch;
    LAB_RETURN_IF_ERROR(full.begin(reference.prefix));
    LAB_RETURN_IF_ERROR(full.feed(reference.rest, Decoder::kDefaultChunk, &reference.logits));
    result.full_seconds += stopwatch.seconds();
    for (CodecRun& run : runs) {
      LAB_RETURN_IF_ERROR(run.add(reference, options.feed, &logits));
      progress(++runs_done);
    }
  }
  for (CodecRun& run : runs) result.codecs.push_back(std::move(run).finish());
  return result;
}

}  // namespace foldkv_lab
