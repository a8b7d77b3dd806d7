#include "samples/lab/share_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "samples/lab/profile_file.h"
#include "samples/lab/progress.h"
#include "samples/lab/share_layers.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  std::vector<std::string> texts;
  std::string output;
  int64_t tokens_per_sample = 64;
  int64_t sequences = 30;
  SharingOptions sharing;
};

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  LAB_ASSIGN_OR_RETURN(
      const std::vector<TextSample> samples,
      sample_texts(arguments.texts, *model.tokenizer, arguments.tokens_per_sample, arguments.sequences));
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  const int64_t layers = model.model.shape.layer_count;
  Progress progress("pairs of layers", layers * (layers - 1) / 2, "at most");
  LAB_ASSIGN_OR_RETURN(const std::vector<int32_t> sources,
                       share_layers(*host, samples, arguments.sharing, [&](int64_t done) { progress.show(done); }));
  LAB_ASSIGN_OR_RETURN(const foldkv::Profile profile, sharing_profile(*host, sources));
  LAB_ASSIGN_OR_RETURN(const int64_t bytes, save_profile(profile, arguments.output));
  if (arguments.model.json) {
    print_json({{"file", {{"path", arguments.output}, {"bytes", bytes}}}, {"sources", sources}});
    return absl::OkStatus();
  }
  std::cout << absl::StrFormat("%s: the layers read the keys and values of layers %s\n", arguments.output,
                               absl::StrJoin(sources, " "))
            << std::flush;
  return absl::OkStatus();
}

}  // namespace

void add_share_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "share",
                 "choose layers that read another layer's keys and values (KVSharer), and write them as a profile");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  app.add("--text", arguments->texts, "text files").required().check(OptionCheck::kExistingFile);
  app.add("--out", arguments->output, "profile to write").required();
  app.add("--layers", arguments->sharing.layers, "layers that shall share")
      .shows_default()
      .check(OptionCheck::kPositive);
  app.add("--threshold", arguments->sharing.threshold,
          "least cosine between final hidden states with and without sharing")
      .shows_default();
  app.add("--tokens-per-sample", arguments->tokens_per_sample, "tokens that are run together").shows_default();
  app.add("--sequences", arguments->sequences, "most samples to run").shows_default();
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
