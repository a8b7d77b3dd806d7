#include "samples/lab/inspect_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "nlohmann/json.hpp"
#include "samples/lab/profile_file.h"
#include "samples/lab/profile_report.h"
#include "samples/lab/sensitivity_report.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  std::string profile;
  std::string plan;
  bool json = false;
};

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile, load_profile(arguments.profile));
  LAB_ASSIGN_OR_RETURN(nlohmann::json report, report_profile(profile, arguments.plan));
  const bool measured = profile.sensitivity_source().ok();
  if (measured) {
    LAB_ASSIGN_OR_RETURN(report["sensitivity"], report_sensitivity(profile));
  }
  if (arguments.json) {
    print_json(report);
  } else {
    std::cout << profile_summary(report) << profile_table(report)
              << (measured ? sensitivity_table(report["sensitivity"]) : "") << std::flush;
  }
  return absl::OkStatus();
}

}  // namespace

void add_inspect_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "inspect", "show what a profile holds");
  app.add("profile", arguments->profile, "profile file").required().check(OptionCheck::kExistingFile);
  app.add("--plan", arguments->plan, "plan whose bands are shown; default: the first").check(plan_name());
  app.add_flag("--json", arguments->json, "print the result as JSON");
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
