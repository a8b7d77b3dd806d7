#include "samples/lab/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/decoder.h"
#include "samples/lab/divergence.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Sums over positions; means are taken at the end.
struct Sums {
  int64_t windows = 0;
  int64_t positions = 0;
  int64_t targets = 0;
  int64_t same_top = 0;
  double kl = 0;
  double full_loss = 0;
  double compressed_loss = 0;
};

EvaluationFigures means_of(const Sums& sums) {
  const double positions = static_cast<double>(sums.positions);
  const double targets = static_cast<double>(std::max<int64_t>(sums.targets, 1));
  return {sums.windows,
          sums.positions,
          sums.kl / positions,
          static_cast<double>(sums.same_top) / positions,
          sums.full_loss / targets,
          sums.compressed_loss / targets};
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
  }
  return mean;
}

// Feeds one window through one cache. logits: of all tokens after the prefix.
class WindowRunner {
 public:
  WindowRunner(const Model& model, Attention& attention, ThreadPool& threads)
      : attention_(attention), decoder_(model, attention, threads), vocabulary_(model.shape.vocabulary_size) {}

  [[nodiscard]] absl::Status feed_prefix(std::span<const Token> prefix) {
    LAB_RETURN_IF_ERROR(attention_.clear());
    return decoder_.feed(prefix, 0, &step_logits_);
  }

  [[nodiscard]] absl::Status feed_rest(std::span<const Token> rest, int64_t step, std::vector<float>* logits) {
    logits->clear();
    logits->reserve(rest.size() * static_cast<size_t>(vocabulary_));
    const int64_t count = static_cast<int64_t>(rest.size());
    for (int64_t start = 0; start < count; start += step) {
      const int64_t size = std::min(step, count - start);
      LAB_RETURN_IF_ERROR(decoder_.feed(rest.subspan(static_cast<size_t>(start), static_cast<size_t>(size)), size,
                                        &step_logits_, size));
      logits->insert(logits->end(), step_logits_.begin(), step_logits_.end());
    }
    return absl::OkStatus();
  }

 private:
  Attention& attention_;
  Decoder decoder_;
  int64_t vocabulary_;
  std::vector<float> step_logits_;
};

absl::Status add_window(std::span<const Token> rest, const std::vector<float>& full,
                        const std::vector<float>& compressed, int64_t vocabulary, Sums* sums) {
  const size_t width = static_cast<size_t>(vocabulary);
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

}  // namespace

double EvaluationFigures::full_perplexity() const { return std::exp(full_loss); }
double EvaluationFigures::compressed_perplexity() const { return std::exp(compressed_loss); }

absl::StatusOr<Evaluation> evaluate(FoldkvHost& host, const foldkv::Profile* profile,
                                    const std::vector<TextSample>& windows, const EvaluationOptions& options,
                                    absl::FunctionRef<void(int64_t)> progress) {
  LAB_RETURN_IF_ERROR(check_windows(windows, options));
  const Model& model = host.model();
  const int64_t length = static_cast<int64_t>(windows[0].tokens.size());
  FullAttention full_attention(model, CacheFormat::kF32, length, host.threads());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> compressed_attention,
                       FoldkvAttention::create(host, profile, options.attention));
  WindowRunner full(model, full_attention, host.threads());
  WindowRunner compressed(model, *compressed_attention, host.threads());
  Evaluation result;
  std::vector<std::pair<std::string, Sums>> texts;
  std::vector<float> full_logits;
  std::vector<float> compressed_logits;
  int64_t windows_done = 0;
  for (const TextSample& window : windows) {
    const std::span<const Token> tokens(window.tokens);
    const std::span<const Token> prefix = tokens.first(static_cast<size_t>(options.prefix));
    const std::span<const Token> rest = tokens.subspan(static_cast<size_t>(options.prefix));
    Clock::time_point start = Clock::now();
    LAB_RETURN_IF_ERROR(full.feed_prefix(prefix));
    LAB_RETURN_IF_ERROR(full.feed_rest(rest, Decoder::kDefaultChunk, &full_logits));
    result.full_seconds += seconds_since(start);
    start = Clock::now();
    LAB_RETURN_IF_ERROR(compressed.feed_prefix(prefix));
    LAB_ASSIGN_OR_RETURN(result.bytes.after_prefix, compressed_attention->stats());
    LAB_RETURN_IF_ERROR(compressed.feed_rest(rest, options.feed, &compressed_logits));
    LAB_ASSIGN_OR_RETURN(result.bytes.after_window, compressed_attention->stats());
    result.compressed_seconds += seconds_since(start);
    LAB_RETURN_IF_ERROR(add_window(rest, full_logits, compressed_logits, model.shape.vocabulary_size,
                                   &sums_of_text(&texts, window.source)));
    progress(++windows_done);
  }
  for (const auto& [name, sums] : texts) result.texts.emplace_back(name, means_of(sums));
  result.all = mean_of_texts(result.texts);
  return result;
}

}  // namespace foldkv_lab
