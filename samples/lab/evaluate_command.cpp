#include "samples/lab/evaluate_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "samples/lab/evaluate.h"
#include "samples/lab/evaluate_task.h"
#include "samples/lab/evaluation_report.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/named_codec.h"
#include "samples/lab/policy_arguments.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::vector<std::string> profiles;
  std::vector<std::string> plans;
  std::vector<std::string> codecs;  // that need no profile
  PolicyArguments policies;
  std::vector<std::string> texts;
  int64_t length = 1024;
  int64_t windows = 4;
  EvaluationOptions evaluation;
  std::vector<std::string> tasks;
  TrialOptions trials;
};

// A task with what it asks.
struct TaskPlan {
  std::string name;
  std::vector<TaskTrial> trials;
};

// What is needed before anything runs, so that a wrong argument is not found after an hour.
struct Plan {
  std::vector<foldkv::Profile> profiles;  // those of --profile come first
  std::vector<Codec> codecs;
  std::vector<TextSample> windows;
  std::vector<TaskPlan> tasks;
};

// Profiles are named by their files, and by their paths when two files share a name.
std::string codec_name(const std::vector<std::string>& paths, const std::string& path) {
  const auto stem = [](const std::string& file) { return std::filesystem::path(file).stem().string(); };
  const int64_t namesakes =
      std::count_if(paths.begin(), paths.end(), [&](const std::string& other) { return stem(other) == stem(path); });
  return namesakes > 1 ? path : stem(path);
}

// The plans asked for that the last profile has.
absl::Status add_plans(const Arguments& arguments, const std::string& name, Plan* plan) {
  const foldkv::Profile& profile = plan->profiles.back();
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  const bool all = arguments.plans == std::vector<std::string>{"all"};
  const auto asked = [&](const std::string& other) {
    return all || std::find(arguments.plans.begin(), arguments.plans.end(), other) != arguments.plans.end();
  };
  size_t found = 0;
  for (int32_t index = 0; index < info.plan_count; ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_info plan_info, "reading a plan", profile.plan_info(index));
    if (!asked(plan_info.name)) continue;
    FoldkvAttention::Options options = arguments.sequence.options();
    options.plan = plan_info.name;
    plan->codecs.push_back({absl::StrCat(name, " ", plan_info.name), &profile, options});
    ++found;
  }
  if (all || found == std::set<std::string>(arguments.plans.begin(), arguments.plans.end()).size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--plan: the profile ", name, " has not all of these plans: ", absl::StrJoin(arguments.plans, ", ")));
}

absl::Status add_codecs(const Arguments& arguments, FoldkvHost& host, Plan* plan) {
  const FoldkvAttention::Options options = arguments.sequence.options();
  plan->profiles.reserve(arguments.profiles.size() + arguments.codecs.size());  // codecs point to them
  for (const std::string& path : arguments.profiles) {
    LAB_ASSIGN_OR_RETURN(foldkv::Profile profile, load_profile(path));
    plan->profiles.push_back(std::move(profile));
    const std::string name = codec_name(arguments.profiles, path);
    if (arguments.plans.empty()) {
      plan->codecs.push_back({name, &plan->profiles.back(), options});
    } else {
      LAB_RETURN_IF_ERROR(add_plans(arguments, name, plan));
    }
  }
  for (const std::string& name : arguments.codecs) {
    LAB_ASSIGN_OR_RETURN(foldkv::Profile profile, named_codec_profile(host, name));
    plan->profiles.push_back(std::move(profile));
    plan->codecs.push_back({name, &plan->profiles.back(), options});
  }
  if (plan->codecs.empty()) {
    if (!arguments.plans.empty()) return absl::InvalidArgumentError("--plan needs a --profile that has it");
    plan->codecs.push_back({"exact", nullptr, options});
  }
  LAB_ASSIGN_OR_RETURN(plan->codecs, arguments.policies.apply(host, std::move(plan->codecs)));
  return check_codecs(plan->codecs);
}

absl::Status add_tasks(const Arguments& arguments, const Tokenizer& tokenizer, Plan* plan) {
  std::vector<const Task*> tasks;
  for (const std::string& name : arguments.tasks) {
    LAB_ASSIGN_OR_RETURN(const Task* task, find_task(name));
    tasks.push_back(task);
  }
  if (tasks.empty()) return absl::OkStatus();
  LAB_ASSIGN_OR_RETURN(const Haystack haystack, Haystack::load(arguments.texts, tokenizer));
  for (const Task* task : tasks) {
    LAB_ASSIGN_OR_RETURN(std::vector<TaskTrial> trials, draw_trials(*task, haystack, tokenizer, arguments.trials));
    plan->tasks.push_back({task->name, std::move(trials)});
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> make_plan(const Arguments& arguments, const LanguageModel& model, FoldkvHost& host) {
  Plan plan;
  if (arguments.windows < 1 && arguments.tasks.empty()) {
    return absl::InvalidArgumentError("--windows 0 and no --task: there is nothing to evaluate");
  }
  LAB_RETURN_IF_ERROR(add_codecs(arguments, host, &plan));
  LAB_RETURN_IF_ERROR(add_tasks(arguments, *model.tokenizer, &plan));
  if (arguments.windows > 0) {
    LAB_ASSIGN_OR_RETURN(plan.windows,
                         sample_texts(arguments.texts, *model.tokenizer, arguments.length, arguments.windows));
  }
  const int64_t longest =
      std::max(plan.windows.empty() ? 0 : arguments.length, plan.tasks.empty() ? 0 : arguments.trials.length);
  if (longest > model.model.shape.context_length) {
    std::cerr << absl::StrFormat("note: %d tokens are beyond the %d that the model was trained for\n", longest,
                                 model.model.shape.context_length);
  }
  return plan;
}

absl::StatusOr<Evaluation> run_windows(const Arguments& arguments, const Plan& plan, FoldkvHost& host) {
  Progress progress("evaluating", static_cast<int64_t>(plan.windows.size() * plan.codecs.size()), "runs");
  progress.show(0);
  return evaluate(host, plan.codecs, plan.windows, arguments.evaluation, [&](int64_t done) { progress.show(done); });
}

absl::StatusOr<TaskEvaluation> run_task(const TaskPlan& task, const Plan& plan, const Tokenizer& tokenizer,
                                        FoldkvHost& host) {
  Progress progress(absl::StrCat("task ", task.name), static_cast<int64_t>(task.trials.size() * plan.codecs.size()),
                    "runs");
  progress.show(0);
  return evaluate_task(host, plan.codecs, tokenizer, task.name, task.trials,
                       [&](int64_t done) { progress.show(done); });
}

// The entries of codecs, with the files of their profiles.
nlohmann::json windows_json(const Arguments& arguments, const Plan& plan, const Evaluation& evaluation) {
  nlohmann::json json = evaluation_json(evaluation);
  for (size_t file = 0; file < arguments.profiles.size(); ++file) {
    for (size_t i = 0; i < plan.codecs.size(); ++i) {
      if (plan.codecs[i].profile != &plan.profiles[file]) continue;
      json["codecs"][i]["profile"] = arguments.profiles[file];
    }
  }
  json["length"] = arguments.length;
  json["prefix"] = arguments.evaluation.prefix;
  return json;
}

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  LAB_ASSIGN_OR_RETURN(const Plan plan, make_plan(arguments, model, *host));
  nlohmann::json json = nlohmann::json::object();
  if (!plan.windows.empty()) {
    LAB_ASSIGN_OR_RETURN(const Evaluation evaluation, run_windows(arguments, plan, *host));
    json = windows_json(arguments, plan, evaluation);
    if (!arguments.model.json) std::cout << evaluation_table(evaluation) << std::flush;
    std::cerr << evaluation_warnings(evaluation);
  }
  for (const TaskPlan& task : plan.tasks) {
    LAB_ASSIGN_OR_RETURN(const TaskEvaluation evaluation, run_task(task, plan, *model.tokenizer, *host));
    json["tasks"].push_back(task_json(evaluation));
    if (!arguments.model.json) std::cout << "\n" << task_table(evaluation) << std::flush;
  }
  json["model"] = model.name;
  if (arguments.model.json) print_json(json);
  return absl::OkStatus();
}

std::string task_help() {
  std::string help = "ask for something hidden in the texts; may be given several times: ";
  for (const Task& task : all_tasks()) {
    absl::StrAppend(&help, &task == &all_tasks().front() ? "" : "; ", task.name, " (", task.description, ")");
  }
  return help;
}

std::string codec_help() {
  std::string help = "codecs that need no profile: ";
  for (const NamedCodec& codec : all_named_codecs()) {
    absl::StrAppend(&help, &codec == all_named_codecs().data() ? "" : "; ", codec.name, " (", codec.description, ")");
  }
  return help;
}

void add_task_options(OptionList& app, Arguments& arguments) {
  app.add("--task", arguments.tasks, task_help());
  app.add("--trials", arguments.trials.trials, "questions of each task").shows_default();
  app.add("--task-length", arguments.trials.length, "tokens of the text that a question is asked of").shows_default();
  app.add("--seed", arguments.trials.seed, "seed of texts, hidden things and their places").shows_default();
}

}  // namespace

void add_evaluate_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  // The protocol keeps what is fed after the prefix exact.
  arguments->sequence.fold = 0;
  OptionList app(program, "evaluate",
                 "measure what compression loses, against the full cache: divergence on texts, answers to questions");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  arguments->sequence.add_to(app);
  app.add("--profile", arguments->profiles,
          "profiles to compare, the full cache runs once for all; without one FoldKV keeps everything exact")
      .check(OptionCheck::kExistingFile);
  app.add("--plan", arguments->plans, "plans of the profiles to compare, or all; default: the first of each");
  app.add("--codec", arguments->codecs, codec_help());
  arguments->policies.add_to(app);
  app.add("--text", arguments->texts, "text files").required().check(OptionCheck::kExistingFile);
  app.add("--length", arguments->length, "tokens of a window").shows_default();
  app.add("--prefix", arguments->evaluation.prefix, "tokens of it that are fed first and compressed").shows_default();
  app.add("--windows", arguments->windows, "most windows, spread evenly over all texts; 0: only tasks").shows_default();
  app.add("--feed", arguments->evaluation.feed, "tokens per step of the rest").shows_default();
  add_task_options(app, *arguments);
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
