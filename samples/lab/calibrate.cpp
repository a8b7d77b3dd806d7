#include "samples/lab/calibrate.h"

#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "samples/lab/checkpoint.h"
#include "samples/lab/decoder.h"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/observe_cache_gradients.h"
#include "samples/lab/plan_ratios.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

absl::StatusOr<foldkv::Calibrator> create_calibrator(FoldkvHost& host, const CalibrationOptions& options) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Calibrator calibrator, "creating a calibrator",
                              foldkv::Calibrator::create(host.runtime(), host.foldkv_model(), options.calibrator));
  return calibrator;
}

// An empty calibrator refuses to be solved for its lack of rows, and before that for options that it would refuse later.
absl::Status check_solve_options(const foldkv::Calibrator& empty, const foldkv_solve_options& options) {
  const foldkv::Result<foldkv::Profile> refused = empty.solve(options);
  if (refused.ok() || refused.status() == FOLDKV_E_STATE) return absl::OkStatus();
  return status_of(refused.error(), "checking how to solve");
}

absl::StatusOr<int64_t> sample_count(const foldkv::Calibrator& calibrator) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_calibrator_info info, "reading the calibrator", calibrator.info());
  return info.samples;
}

// Takes the sums of the checkpoint into an empty calibrator.
absl::Status resume(FoldkvHost& host, std::span<const TextSample> samples, const CalibrationOptions& options,
                    foldkv::Calibrator& calibrator) {
  if (options.checkpoint.empty() || !std::filesystem::exists(options.checkpoint)) return absl::OkStatus();
  LAB_ASSIGN_OR_RETURN(const Checkpoint checkpoint, load_checkpoint(host, options.checkpoint));
  LAB_ASSIGN_OR_RETURN(const int64_t done, sample_count(checkpoint.calibrator));
  const bool fits = done <= static_cast<int64_t>(samples.size()) &&
                    checkpoint.samples_hash ==
                        hash_of_samples(samples.first(static_cast<size_t>(done)), options.gradients);
  if (!fits) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint ", options.checkpoint, " has counted ", done, " samples that are not the first of this command: "
        "texts, --tokens-per-sample, --sequences, --held-out or whether there are gradients differ"));
  }
  LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("going on from the checkpoint ", options.checkpoint),
                             calibrator.merge(checkpoint.calibrator));
  return absl::OkStatus();
}

// Runs samples through the model one after the other.
class Observation {
 public:
  [[nodiscard]] static absl::StatusOr<Observation> create(FoldkvHost& host, const CalibrationOptions& options,
                                                          foldkv::Calibrator& calibrator) {
    FoldkvAttention::Options attention_options;
    attention_options.sequence.dtype = FOLDKV_F32;
    LAB_ASSIGN_OR_RETURN(std::unique_ptr<FoldkvAttention> attention,
                         FoldkvAttention::create(host, nullptr, attention_options));
    return Observation(host, options, calibrator, std::move(attention));
  }

  // seed: of the labels that are drawn for gradients.
  [[nodiscard]] absl::Status add(const TextSample& sample, uint64_t seed, absl::FunctionRef<void(int64_t)> progress) {
    LAB_RETURN_IF_ERROR(attention_->clear());
    LAB_RETURN_IF_FOLDKV_ERROR("attaching the calibrator", calibrator_.attach(attention_->sequence()));
    std::vector<float> no_logits;
    LAB_RETURN_IF_ERROR(decoder_.feed(sample.tokens, 0, &no_logits, Decoder::kDefaultChunk, progress));
    if (options_.gradients) {
      LAB_RETURN_IF_ERROR(observe_cache_gradients(host_, attention_->sequence(), sample, seed, calibrator_));
    }
    LAB_RETURN_IF_FOLDKV_ERROR("detaching the calibrator", foldkv::Calibrator::detach_from(attention_->sequence()));
    return absl::OkStatus();
  }

 private:
  Observation(FoldkvHost& host, const CalibrationOptions& options, foldkv::Calibrator& calibrator,
              std::unique_ptr<FoldkvAttention> attention)
      : host_(host),
        options_(options),
        calibrator_(calibrator),
        attention_(std::move(attention)),
        decoder_(host.model(), *attention_, host.threads()) {}

  FoldkvHost& host_;
  const CalibrationOptions& options_;
  foldkv::Calibrator& calibrator_;
  std::unique_ptr<FoldkvAttention> attention_;
  Decoder decoder_;
};

}  // namespace

absl::StatusOr<foldkv::Calibrator> observe_samples(FoldkvHost& host, const std::vector<TextSample>& samples,
                                                   const CalibrationOptions& options,
                                                   absl::FunctionRef<void(int64_t)> progress) {
  LAB_ASSIGN_OR_RETURN(foldkv::Calibrator calibrator, create_calibrator(host, options));
  LAB_RETURN_IF_ERROR(check_solve_options(calibrator, options.solve));
  const std::span<const TextSample> all(samples);
  LAB_RETURN_IF_ERROR(resume(host, all, options, calibrator));
  LAB_ASSIGN_OR_RETURN(const int64_t resumed, sample_count(calibrator));
  LAB_ASSIGN_OR_RETURN(Observation observation, Observation::create(host, options, calibrator));
  int64_t tokens_done = 0;
  for (int64_t index = 0; index < static_cast<int64_t>(samples.size()); ++index) {
    const TextSample& sample = samples[static_cast<size_t>(index)];
    const int64_t tokens_before = tokens_done;
    tokens_done += static_cast<int64_t>(sample.tokens.size());
    if (index < resumed) continue;
    LAB_RETURN_IF_ERROR(observation.add(sample, static_cast<uint64_t>(tokens_done),
                                        [&](int64_t fed) { progress(tokens_before + fed); }));
    const int64_t done = index + 1;
    const bool due = done % options.checkpoint_samples == 0 || done == static_cast<int64_t>(samples.size());
    if (options.checkpoint.empty() || !due) continue;
    LAB_RETURN_IF_ERROR(save_checkpoint(
        calibrator, hash_of_samples(all.first(static_cast<size_t>(done)), options.gradients), options.checkpoint));
  }
  return calibrator;
}

absl::StatusOr<foldkv::Calibrator> load_checkpoints(FoldkvHost& host, const std::vector<std::string>& paths,
                                                    const CalibrationOptions& options) {
  LAB_ASSIGN_OR_RETURN(foldkv::Calibrator calibrator, create_calibrator(host, options));
  for (const std::string& path : paths) {
    LAB_ASSIGN_OR_RETURN(const Checkpoint checkpoint, load_checkpoint(host, path));
    LAB_RETURN_IF_FOLDKV_ERROR(absl::StrCat("adding the checkpoint ", path), calibrator.merge(checkpoint.calibrator));
  }
  return calibrator;
}

absl::StatusOr<foldkv::Profile> solve_profile(const foldkv::Calibrator& calibrator, const CalibrationOptions& options) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile profile, "solving for a profile", calibrator.solve(options.solve));
  if (options.ratios.empty()) return profile;
  return plan_ratios(profile, options.ratios);
}

absl::StatusOr<foldkv::Profile> calibrate(FoldkvHost& host, const std::vector<TextSample>& samples,
                                          const CalibrationOptions& options,
                                          absl::FunctionRef<void(int64_t)> progress) {
  LAB_ASSIGN_OR_RETURN(const foldkv::Calibrator calibrator, observe_samples(host, samples, options, progress));
  return solve_profile(calibrator, options);
}

}  // namespace foldkv_lab
