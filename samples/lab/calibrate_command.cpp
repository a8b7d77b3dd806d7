#include "samples/lab/calibrate_command.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/calibrate.h"
#include "samples/lab/calibration_checks.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/held_out.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/profile_report.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/stopwatch.h"
#include "samples/lab/text_samples.h"
#include "samples/lab/write_file.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  std::vector<std::string> texts;
  std::string output;
  int64_t tokens_per_sample = 1024;
  int64_t sequences = 40;
  CalibrationOptions calibration;
  std::vector<std::string> merged;
  int64_t held_out = -1;  // below 0: the default
  std::string key_bands;
  std::string value_bands;
  bool uncentred = false;
  bool rotate = false;
  bool plain_metric = false;
};

// The library wants arrays: they must live until the profile is solved.
struct Bands {
  std::vector<foldkv_band> keys;
  std::vector<foldkv_band> values;
};

absl::Status set_bands(const Arguments& arguments, foldkv_solve_options* solve, Bands* bands) {
  LAB_ASSIGN_OR_RETURN(bands->keys, parse_bands(arguments.key_bands));
  LAB_ASSIGN_OR_RETURN(bands->values, parse_bands(arguments.value_bands));
  solve->key_bands = bands->keys.empty() ? nullptr : bands->keys.data();
  solve->key_band_count = static_cast<int32_t>(bands->keys.size());
  solve->value_bands = bands->values.empty() ? nullptr : bands->values.data();
  solve->value_band_count = static_cast<int32_t>(bands->values.size());
  return absl::OkStatus();
}

// What bit plans need where the user said nothing else: many layers together, all coordinates, ranked by what their
// errors cost, in rotated units of 64.
void set_up_for_plans(CalibrationOptions& options, bool plain_metric) {
  constexpr int32_t kAllCoordinates = 65536;
  constexpr int32_t kUnit = 64;
  constexpr int32_t kLayersPerGroup = 12;
  options.gradients = !plain_metric;
  options.solve.use_metric = plain_metric ? 0 : 1;
  options.solve.rotate = 1;
  if (options.solve.latent_width == 0) options.solve.latent_width = kAllCoordinates;
  if (options.solve.scale_group == 0) options.solve.scale_group = kUnit;
  if (options.calibrator.layers_per_group == 0) options.calibrator.layers_per_group = kLayersPerGroup;
}

// What is run and what is kept from it.
struct Samples {
  std::vector<TextSample> observed;
  std::vector<TextSample> held_out;
};

// Profiles of plans are checked on a sample by default, when that takes little of what there is.
int64_t held_out_count(const Arguments& arguments, int64_t available) {
  constexpr int64_t kEnough = 8;
  if (arguments.held_out >= 0) return arguments.held_out;
  return !arguments.calibration.ratios.empty() && available >= kEnough ? 1 : 0;
}

absl::StatusOr<Samples> take_samples(const Arguments& arguments, const Tokenizer& tokenizer) {
  Samples samples;
  if (arguments.sequences > 0) {
    if (arguments.texts.empty()) return absl::InvalidArgumentError("--text is needed, or --merge and --sequences 0");
    LAB_ASSIGN_OR_RETURN(samples.observed, sample_texts(arguments.texts, tokenizer, arguments.tokens_per_sample,
                                                        arguments.sequences));
  } else if (arguments.merged.empty()) {
    return absl::InvalidArgumentError("--sequences 0 and no --merge: there is nothing to calibrate on");
  }
  const auto available = static_cast<int64_t>(samples.observed.size());
  const int64_t held_out = held_out_count(arguments, available);
  if (held_out > available) {
    return absl::InvalidArgumentError(absl::StrCat("--held-out ", held_out, " of ", available, " samples"));
  }
  const auto kept = samples.observed.end() - held_out;
  samples.held_out.assign(std::make_move_iterator(kept), std::make_move_iterator(samples.observed.end()));
  samples.observed.erase(kept, samples.observed.end());
  return samples;
}

absl::Status check_files(const Arguments& arguments) {
  if (arguments.output.empty() && arguments.calibration.checkpoint.empty()) {
    return absl::InvalidArgumentError("--out is needed; only with --checkpoint it may be left out");
  }
  for (const std::string& path : {arguments.output, arguments.calibration.checkpoint}) {
    if (!path.empty()) LAB_RETURN_IF_ERROR(check_writable(path));
  }
  return absl::OkStatus();
}

// Checkpoints that are added, and what they and the samples will have counted.
struct Sources {
  std::optional<foldkv::Calibrator> merged;
  int64_t samples = 0;
  int64_t rows = 0;
};

absl::StatusOr<Sources> open_sources(const Arguments& arguments, const CalibrationOptions& options,
                                     const Samples& samples, FoldkvHost& host) {
  constexpr int64_t kSkippedTokens = 4;  // of each sample, the library's default
  Sources sources;
  sources.samples = static_cast<int64_t>(samples.observed.size());
  sources.rows = sources.samples * std::max<int64_t>(arguments.tokens_per_sample - kSkippedTokens, 0);
  if (arguments.merged.empty()) return sources;
  LAB_ASSIGN_OR_RETURN(sources.merged, load_checkpoints(host, arguments.merged, options));
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_calibrator_info info, "reading the checkpoints", sources.merged->info());
  sources.samples += info.samples;
  sources.rows += info.rows;
  return sources;
}

absl::StatusOr<foldkv::Calibrator> observe(const CalibrationOptions& options, const Samples& samples,
                                           const Sources& sources, int64_t tokens, FoldkvHost& host) {
  Progress progress("calibrating", tokens, "tokens");
  LAB_ASSIGN_OR_RETURN(
      foldkv::Calibrator calibrator,
      observe_samples(host, samples.observed, options, [&](int64_t done) { progress.show(done); }));
  if (sources.merged.has_value()) {
    LAB_RETURN_IF_FOLDKV_ERROR("adding checkpoints", calibrator.merge(*sources.merged));
  }
  return calibrator;
}

absl::StatusOr<foldkv::Profile> make_profile(const foldkv::Calibrator& calibrator, const CalibrationOptions& options,
                                             const Samples& samples, FoldkvHost& host) {
  LAB_ASSIGN_OR_RETURN(foldkv::Profile profile, solve_profile(calibrator, options));
  if (samples.held_out.empty()) return profile;
  const auto plans = static_cast<int64_t>(std::max<size_t>(options.ratios.size(), 1));
  Progress progress("checking on text held out", static_cast<int64_t>(samples.held_out.size()) * plans, "runs");
  return check_on_held_out(host, std::move(profile), samples.held_out, [&](int64_t done) { progress.show(done); });
}

absl::Status print(const Arguments& arguments, const foldkv::Profile& profile, nlohmann::json run, int64_t bytes) {
  LAB_ASSIGN_OR_RETURN(nlohmann::json report, report_profile(profile));
  report["file"] = {{"path", arguments.output}, {"bytes", bytes}};
  report["run"] = std::move(run);
  if (arguments.model.json) {
    print_json(report);
    return absl::OkStatus();
  }
  std::cout << absl::StrFormat("%d samples, %d tokens in %.1f s: %s (%s)\n", report["run"]["samples"].get<int64_t>(),
                               report["run"]["tokens"].get<int64_t>(), report["run"]["seconds"].get<double>(),
                               arguments.output, byte_text(static_cast<double>(bytes)))
            << profile_summary(report) << plan_table(report) << std::flush;
  return absl::OkStatus();
}

absl::Status run(const Arguments& arguments) {
  CalibrationOptions options = arguments.calibration;
  options.solve.uncentred = arguments.uncentred ? 1 : 0;
  options.solve.rotate = arguments.rotate ? 1 : 0;
  if (!options.ratios.empty()) set_up_for_plans(options, arguments.plain_metric);
  Bands bands;
  LAB_RETURN_IF_ERROR(set_bands(arguments, &options.solve, &bands));
  LAB_RETURN_IF_ERROR(check_files(arguments));
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  const ModelShape& shape = model.model.shape;
  LAB_RETURN_IF_ERROR(check_plans(shape, options));
  LAB_ASSIGN_OR_RETURN(const Samples samples, take_samples(arguments, *model.tokenizer));
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  LAB_ASSIGN_OR_RETURN(const Sources sources, open_sources(arguments, options, samples, *host));
  LAB_RETURN_IF_ERROR(check_held_out(static_cast<int64_t>(samples.held_out.size()), sources.samples,
                                     arguments.tokens_per_sample));
  LAB_RETURN_IF_ERROR(check_rows(sources.rows));
  std::cerr << note_on_rows(shape, options, sources.rows);
  const Stopwatch stopwatch;
  const int64_t tokens = static_cast<int64_t>(samples.observed.size()) * arguments.tokens_per_sample;
  LAB_ASSIGN_OR_RETURN(const foldkv::Calibrator calibrator, observe(options, samples, sources, tokens, *host));
  if (arguments.output.empty()) return absl::OkStatus();
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile, make_profile(calibrator, options, samples, *host));
  LAB_ASSIGN_OR_RETURN(const int64_t bytes, save_profile(profile, arguments.output));
  return print(arguments, profile,
               {{"samples", samples.observed.size()},
                {"held_out", samples.held_out.size()},
                {"tokens", tokens},
                {"seconds", stopwatch.seconds()}},
               bytes);
}

void add_sample_options(OptionList& app, Arguments& arguments) {
  app.add("--held-out", arguments.held_out,
          "last samples that are not calibrated on, but on which each plan is compared with the full cache; "
          "default: 1 with --plan and 8 samples or more, else 0")
      .check(OptionCheck::kNonNegative);
  app.add("--checkpoint", arguments.calibration.checkpoint,
          "file of what has been counted so far: gone on from when it is there, and kept; without --out nothing "
          "else is made");
  app.add("--checkpoint-samples", arguments.calibration.checkpoint_samples, "samples between writing it")
      .check(OptionCheck::kPositive)
      .shows_default();
  app.add("--merge", arguments.merged, "checkpoints of other processes, which are added")
      .check(OptionCheck::kExistingFile);
}

}  // namespace

void add_calibrate_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "calibrate", "learn a profile of a model from texts");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  app.add("--text", arguments->texts, "text files").check(OptionCheck::kExistingFile);
  app.add("--out", arguments->output, "profile to write");
  app.add("--tokens-per-sample", arguments->tokens_per_sample, "tokens that are run together").shows_default();
  app.add("--sequences", arguments->sequences, "most samples to take; 0: none, only what --merge brings")
      .check(OptionCheck::kNonNegative)
      .shows_default();
  add_sample_options(app, *arguments);
  foldkv_solve_options& solve = arguments->calibration.solve;
  app.add("--layers-per-group", arguments->calibration.calibrator.layers_per_group,
          "adjacent layers that share latents; default 4");
  app.add("--latent-width", solve.latent_width, "coordinates kept; default: the key width of one layer");
  Option bits = app.add("--bits", solve.bits, "bits of a coordinate, 2 to 8; default 4");
  app.add("--scale-group", solve.scale_group, "coordinates that share a scale; default 128");
  app.add_flag("--rotate", arguments->rotate, "rotate inside scale groups");
  app.add("--correction-rank", solve.correction_rank, "rank of each sequence's key correction; default 0");
  app.add("--seed", solve.seed, "seed of the correction");
  Option plan =
      app.add("--plan", arguments->calibration.ratios,
              "bit plans that take so many times less than 16 bit, as 14 31 64; groups of 12 layers then, all "
              "their coordinates, and gradients that say what errors cost")
          .check(OptionCheck::kPositive)
          .excludes(bits);
  app.add_flag("--no-gradients", arguments->plain_metric, "bit plans by variance alone");
  app.add_flag("--no-centre", arguments->uncentred, "subtract no mean (to see what the mean is worth)");
  app.add("--key-bands", arguments->key_bands, "bands of key coordinates instead of --bits, as 64x8,128x4")
      .excludes(plan);
  app.add("--value-bands", arguments->value_bands, "likewise for values").excludes(plan);
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
