#include "samples/lab/plan_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Json = nlohmann::json;

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::string profile;
  foldkv_plan_wish wish = foldkv::init<foldkv_plan_wish>();
};

// What one sequence takes under each plan.
absl::StatusOr<Json> report_plans(const Arguments& arguments, FoldkvHost& host, const foldkv::Profile& profile,
                                  foldkv_sequence_options options) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_profile_info info, "reading the profile", profile.info());
  Json plans = Json::array();
  for (int32_t index = 0; index < info.plan_count; ++index) {
    LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_info plan, "reading a plan", profile.plan_info(index));
    options.plan = plan.name;
    LAB_ASSIGN_OR_RETURN_FOLDKV(
        const foldkv_estimate estimate, "estimating",
        foldkv::Sequence::estimate(host.runtime(), host.foldkv_model(), &profile, arguments.wish.tokens,
                                   arguments.wish.generated_tokens, options, *arguments.wish.step_options));
    const double ratio = static_cast<double>(plan.full_bytes_per_token) / static_cast<double>(plan.bytes_per_token);
    plans.push_back({{"name", plan.name},
                     {"bytes_per_token", plan.bytes_per_token},
                     {"ratio", ratio},
                     {"expected_cost", plan.expected_cost},
                     {"sequence_bytes", estimate.sequence_bytes},
                     {"peak_bytes", estimate.peak_bytes}});
  }
  return plans;
}

Json choice_json(const foldkv_plan_choice& choice) {
  return Json{{"plan", choice.name},
              {"keep_ratio", choice.keep_ratio},
              {"tokens_kept", choice.tokens_kept},
              {"bytes_per_token", choice.bytes_per_token},
              {"expected_cost", choice.expected_cost},
              {"sequence_bytes", choice.sequence_bytes},
              {"shared_bytes", choice.shared_bytes},
              {"total_bytes", choice.total_bytes},
              {"budget_bytes", choice.budget_bytes},
              {"explanation", choice.explanation}};
}

std::string plans_table(const Json& report) {
  std::string table = absl::StrFormat("  %-12s %11s %8s %11s %13s %13s\n", "plan", "B per token", "ratio", "cost",
                                      "one sequence", "in its step");
  for (const Json& plan : report["plans"]) {
    const bool chosen = plan["name"] == report["choice"]["plan"];
    table += absl::StrFormat("%s %-12s %11d %8.2f %11.4g %13s %13s\n", chosen ? "*" : " ",
                             plan["name"].get<std::string>(), plan["bytes_per_token"].get<int64_t>(),
                             plan["ratio"].get<double>(), plan["expected_cost"].get<double>(),
                             byte_text(plan["sequence_bytes"].get<double>()),
                             byte_text(plan["peak_bytes"].get<double>()));
  }
  return table;
}

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile, load_profile(arguments.profile));
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  const FoldkvAttention::Options attention = arguments.sequence.options();
  foldkv_sequence_options sequence = attention.sequence;
  sequence.struct_size = sizeof sequence;
  auto step = foldkv::init<foldkv_step_options>();
  const bool hidden = attention.input == FoldkvInput::kHidden;
  step.input = hidden ? FOLDKV_INPUT_HIDDEN : FOLDKV_INPUT_QKV;
  step.output = hidden ? FOLDKV_OUTPUT_PROJECTED : FOLDKV_OUTPUT_CONTEXT;
  Arguments asked = arguments;
  asked.wish.sequence_options = &sequence;
  asked.wish.step_options = &step;
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_plan_choice choice, "choosing a plan",
                              profile.choose_plan(host->runtime(), host->foldkv_model(), asked.wish));
  LAB_ASSIGN_OR_RETURN(const Json plans, report_plans(asked, *host, profile, sequence));
  const Json report = {{"plans", plans}, {"choice", choice_json(choice)}};
  if (arguments.model.json) {
    print_json(report);
  } else {
    std::cout << plans_table(report) << choice.explanation << "\n" << std::flush;
  }
  return absl::OkStatus();
}

}  // namespace

void add_plan_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "plan", "choose a bit plan of a profile by what caches may take or cost");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  arguments->sequence.add_to(app);
  app.add("--profile", arguments->profile, "profile of the model").required().check(OptionCheck::kExistingFile);
  foldkv_plan_wish& wish = arguments->wish;
  app.add("--budget", wish.budget_bytes, "bytes of all caches together, as 64MiB").as_bytes();
  app.add("--tokens", wish.tokens, "tokens of each prompt").required();
  app.add("--sequences", wish.sequences, "sequences at the same time; default 1");
  app.add("--generated", wish.generated_tokens, "tokens that each generates");
  app.add("--bytes-per-token", wish.bytes_per_token, "most bytes of a token's latents");
  app.add("--ratio", wish.ratio, "least ratio of 16-bit keys and values to latents");
  app.add("--highest-cost", wish.highest_cost, "highest expected cost; the smallest plan within it is chosen");
  app.add("--highest-divergence", wish.highest_divergence,
          "highest divergence in nats on the text that calibration held out; likewise");
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
