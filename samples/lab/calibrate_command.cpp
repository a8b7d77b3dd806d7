#include "samples/lab/calibrate_command.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/calibrate.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/profile_report.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/text_samples.h"

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

absl::Status run(const Arguments& arguments) {
  CalibrationOptions options = arguments.calibration;
  options.solve.uncentred = arguments.uncentred ? 1 : 0;
  options.solve.rotate = arguments.rotate ? 1 : 0;
  if (!options.ratios.empty()) set_up_for_plans(options, arguments.plain_metric);
  Bands bands;
  LAB_RETURN_IF_ERROR(set_bands(arguments, &options.solve, &bands));
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  LAB_ASSIGN_OR_RETURN(
      const std::vector<TextSample> samples,
      sample_texts(arguments.texts, *model.tokenizer, arguments.tokens_per_sample, arguments.sequences));
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  const auto start = std::chrono::steady_clock::now();
  const int64_t tokens = static_cast<int64_t>(samples.size()) * arguments.tokens_per_sample;
  Progress progress("calibrating", tokens, "tokens");
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile,
                       calibrate(*host, samples, options, [&](int64_t done) { progress.show(done); }));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  LAB_ASSIGN_OR_RETURN(const int64_t bytes, save_profile(profile, arguments.output));
  LAB_ASSIGN_OR_RETURN(nlohmann::json report, report_profile(profile));
  report["file"] = {{"path", arguments.output}, {"bytes", bytes}};
  report["run"] = {{"samples", samples.size()}, {"tokens", tokens}, {"seconds", seconds}};
  if (arguments.model.json) {
    print_json(report);
    return absl::OkStatus();
  }
  std::cout << absl::StrFormat("%d samples, %d tokens in %.1f s: %s (%s)\n", samples.size(), tokens, seconds,
                               arguments.output, byte_text(static_cast<double>(bytes)))
            << profile_summary(report) << std::flush;
  return absl::OkStatus();
}

}  // namespace

void add_calibrate_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* app = program.add_subcommand("calibrate", "learn a profile of a model from texts");
  arguments->model.add_to(*app);
  arguments->runtime.add_to(*app);
  app->add_option("--text", arguments->texts, "text files")->required()->check(CLI::ExistingFile);
  app->add_option("--out", arguments->output, "profile to write")->required();
  app->add_option("--tokens-per-sample", arguments->tokens_per_sample, "tokens that are run together")
      ->capture_default_str();
  app->add_option("--sequences", arguments->sequences, "most samples to run")->capture_default_str();
  foldkv_solve_options& solve = arguments->calibration.solve;
  app->add_option("--layers-per-group", arguments->calibration.calibrator.layers_per_group,
                  "adjacent layers that share latents; default 4");
  app->add_option("--latent-width", solve.latent_width, "coordinates kept; default: the key width of one layer");
  app->add_option("--bits", solve.bits, "bits of a coordinate, 2 to 8; default 4");
  app->add_option("--scale-group", solve.scale_group, "coordinates that share a scale; default 128");
  app->add_flag("--rotate", arguments->rotate, "rotate inside scale groups");
  app->add_option("--correction-rank", solve.correction_rank, "rank of each sequence's key correction; default 0");
  app->add_option("--seed", solve.seed, "seed of the correction");
  app->add_option("--plan", arguments->calibration.ratios,
                  "bit plans that take so many times less than 16 bit, as 14 31 64; groups of 12 layers then, all their "
                  "coordinates, and gradients that say what errors cost")
      ->check(CLI::PositiveNumber);
  app->add_flag("--no-gradients", arguments->plain_metric, "bit plans by variance alone");
  app->add_flag("--no-centre", arguments->uncentred, "subtract no mean (to see what the mean is worth)");
  app->add_option("--key-bands", arguments->key_bands, "bands of key coordinates instead of --bits, as 64x8,128x4");
  app->add_option("--value-bands", arguments->value_bands, "likewise for values");
  app->callback([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
