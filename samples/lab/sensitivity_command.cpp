#include "samples/lab/sensitivity_command.h"

#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/measure_sensitivity.h"
#include "samples/lab/plan_ratios.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/progress.h"
#include "samples/lab/sensitivity_report.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::string profile;
  std::vector<std::string> texts;
  std::string output;
  int64_t examples = 8;
  int64_t length = 1024;
  SensitivityOptions measurement;
  std::vector<double> ratios;
};

absl::StatusOr<int32_t> index_of_plan(const foldkv::Profile& profile, const std::string& name) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  for (int32_t index = 0; index < info.plan_count; ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_info plan, "reading a plan", profile.plan_info(index));
    if (name == plan.name) return index;
  }
  return absl::InvalidArgumentError(absl::StrCat("--groups: the profile has no plan \"", name, "\""));
}

// The names of the texts, as many as fit.
std::string text_names(const std::vector<std::string>& paths, size_t room) {
  std::string names;
  for (const std::string& path : paths) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::filesystem::path(path).filename().string());
  }
  return names.size() <= room ? names : names.substr(0, room - 3) + "...";
}

absl::StatusOr<foldkv::Profile> with_measurement(const Arguments& arguments, const foldkv::Profile& profile,
                                                 const SensitivityMeasurement& measured) {
  auto source = foldkv::init<foldkv_sensitivity_source>();
  source.scale = arguments.measurement.scale;
  source.seed = arguments.measurement.seed;
  const std::string names = text_names(arguments.texts, sizeof source.text - 1);
  std::memcpy(source.text, names.data(), names.size());
  LAB_ASSIGN_OR_RETURN_FOLDKV(foldkv::Profile result, "storing sensitivities",
                              profile.with_sensitivity(measured.layers, source));
  return result;
}

absl::StatusOr<SensitivityMeasurement> measure(const Arguments& arguments, const LanguageModel& model,
                                               const foldkv::Profile& profile) {
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  LAB_RETURN_IF_FOLDKV_ERROR("checking the profile", profile.check(host->foldkv_model()));
  LAB_ASSIGN_OR_RETURN(const std::vector<TextSample> samples,
                       sample_texts(arguments.texts, *model.tokenizer, arguments.length, arguments.examples));
  SensitivityOptions options = arguments.measurement;
  options.attention = arguments.sequence.options();
  options.profile = &profile;
  LAB_ASSIGN_OR_RETURN(const int64_t runs, runs_of_text(*host, options));
  Progress progress("measuring", runs * static_cast<int64_t>(samples.size()), "runs");
  progress.show(0);
  return measure_sensitivity(*host, samples, options, [&](int64_t done) { progress.show(done); });
}

absl::Status run(const Arguments& arguments) {
  const std::string& plan_name = arguments.measurement.groups_plan;
  if (!arguments.ratios.empty() && plan_name.empty()) {
    return absl::InvalidArgumentError("--plan needs --groups: new plans follow from the weights of groups");
  }
  LAB_ASSIGN_OR_RETURN(foldkv::Profile profile, load_profile(arguments.profile));
  int32_t plan = 0;
  if (!plan_name.empty()) {
    LAB_ASSIGN_OR_RETURN(plan, index_of_plan(profile, plan_name));
  }
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  LAB_ASSIGN_OR_RETURN(const SensitivityMeasurement measured, measure(arguments, model, profile));
  nlohmann::json groups = nlohmann::json::array();
  if (!plan_name.empty()) {
    LAB_ASSIGN_OR_RETURN(groups, report_groups(profile, plan, measured.groups));
  }
  if (!arguments.ratios.empty()) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<double> weights, "weighing groups",
                                profile.group_weights(plan, measured.groups));
    LAB_ASSIGN_OR_RETURN(profile, plan_ratios(profile, arguments.ratios, weights));
  }
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile result, with_measurement(arguments, profile, measured));
  LAB_ASSIGN_OR_RETURN(nlohmann::json report, report_sensitivity(result));
  LAB_ASSIGN_OR_RETURN(const int64_t bytes, save_profile(result, arguments.output));
  report["groups"] = groups;
  report["file"] = {{"path", arguments.output}, {"bytes", bytes}};
  if (arguments.model.json) {
    print_json(report);
    return absl::OkStatus();
  }
  std::cout << sensitivity_table(report) << (groups.empty() ? "" : groups_table(groups))
            << absl::StrFormat("%s (%s)\n", arguments.output, byte_text(static_cast<double>(bytes))) << std::flush;
  return absl::OkStatus();
}

}  // namespace

void add_sensitivity_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "sensitivity", "measure how much errors of each layer cost");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  arguments->sequence.add_to(app);
  app.add("--profile", arguments->profile, "profile of the model").required().check(OptionCheck::kExistingFile);
  app.add("--text", arguments->texts, "text files").required().check(OptionCheck::kExistingFile);
  app.add("--out", arguments->output, "profile to write: the one above with what was measured").required();
  app.add("--examples", arguments->examples, "most texts to run").shows_default();
  app.add("--length", arguments->length, "tokens of a text").shows_default();
  SensitivityOptions& measurement = arguments->measurement;
  app.add("--prefix", measurement.prefix, "first tokens of a text, which are perturbed").shows_default();
  app.add("--scale", measurement.scale, "length of the noise in a channel against that of a head's vector")
      .shows_default()
      .check(OptionCheck::kPositive);
  app.add("--seed", measurement.seed, "seed of the noise");
  app.add_flag("--keys", measurement.keys, "perturb keys too");
  app.add("--groups", measurement.groups_plan,
          "a plan of the profile: measure what each layer group and side costs under it");
  app.add("--plan", arguments->ratios,
          "with --groups: new plans in place of the profile's, by what was measured; so many times less than "
          "16 bit, named as calibrate names them. Coordinates are those that the profile's widest plan kept")
      .check(OptionCheck::kPositive);
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
