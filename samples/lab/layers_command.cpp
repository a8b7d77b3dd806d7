#include "samples/lab/layers_command.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "samples/lab/key_similarities.h"
#include "samples/lab/layer_damages.h"
#include "samples/lab/layers_report.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/write_file.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::vector<std::string> texts;
  std::string output;
  int64_t examples = 8;
  int64_t length = 1024;
  SensitivityOptions sensitivity;
  int64_t kept_tokens = 32;
};

absl::StatusOr<LayerFigures> measure(const Arguments& arguments, FoldkvHost& host,
                                     const std::vector<TextSample>& texts) {
  const int64_t runs = host.model().shape.layer_count * static_cast<int64_t>(texts.size());
  SensitivityOptions sensitivity = arguments.sensitivity;
  sensitivity.attention = arguments.sequence.options();
  LayerFigures figures;
  {
    Progress progress("noise on values", runs, "runs");
    LAB_ASSIGN_OR_RETURN(figures.sensitivities, value_sensitivities(host, texts, sensitivity,
                                                                    [&](int64_t done) { progress.show(done); }));
  }
  {
    const SimilarityOptions options{arguments.sequence.options(), sensitivity.prefix, arguments.sequence.sinks};
    Progress progress("keys without what came before", static_cast<int64_t>(texts.size()), "texts");
    LAB_ASSIGN_OR_RETURN(figures.similarities,
                         key_similarities(host, texts, options, [&](int64_t done) { progress.show(done); }));
  }
  const DamageOptions options{arguments.sequence.options(), sensitivity.prefix, arguments.kept_tokens};
  Progress progress("layers cut alone", runs, "runs");
  LAB_ASSIGN_OR_RETURN(figures.damages,
                       layer_damages(host, texts, options, [&](int64_t done) { progress.show(done); }));
  return figures;
}

// What was asked, so that the figures can be had again.
nlohmann::json origin_json(const Arguments& arguments, const LanguageModel& model, size_t examples) {
  nlohmann::json texts = nlohmann::json::array();
  for (const std::string& path : arguments.texts) texts.push_back(std::filesystem::path(path).filename().string());
  return {{"model", model.name},
          {"texts", texts},
          {"options",
           {{"examples", examples},
            {"length", arguments.length},
            {"prefix", arguments.sensitivity.prefix},
            {"scale", arguments.sensitivity.scale},
            {"seed", arguments.sensitivity.seed},
            {"sinks", arguments.sequence.sinks},
            {"recent", arguments.sequence.recent},
            {"cut_to", arguments.kept_tokens}}}};
}

absl::Status write_json(const nlohmann::json& json, const std::string& path) {
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return write_file(path, {std::as_bytes(std::span(text))});
}

absl::Status run(const Arguments& arguments) {
  LAB_RETURN_IF_ERROR(check_writable(arguments.output));
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  LAB_ASSIGN_OR_RETURN(const std::vector<TextSample> texts,
                       sample_texts(arguments.texts, *model.tokenizer, arguments.length, arguments.examples));
  LAB_ASSIGN_OR_RETURN(const LayerFigures figures, measure(arguments, *host, texts));
  nlohmann::json report = origin_json(arguments, model, texts.size());
  report.update(layers_json(figures));
  LAB_RETURN_IF_ERROR(write_json(report, arguments.output));
  if (arguments.model.json) {
    print_json(report);
    return absl::OkStatus();
  }
  std::cout << layers_table(report) << arguments.output << "\n" << std::flush;
  return absl::OkStatus();
}

}  // namespace

void add_layers_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "layers",
                 "measure what eviction policies want to know of each layer: RippleKV's sensitivities, importances for "
                 "CompressKV, EpiCache's similarities");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  arguments->sequence.add_to(app);
  app.add("--text", arguments->texts, "text files").required().check(OptionCheck::kExistingFile);
  app.add("--out", arguments->output, "JSON file to write, for evaluate --layers").required();
  app.add("--examples", arguments->examples, "most texts to run, at least 2").shows_default();
  app.add("--length", arguments->length, "tokens of a text").shows_default();
  SensitivityOptions& sensitivity = arguments->sensitivity;
  app.add("--prefix", sensitivity.prefix,
          "first tokens of a text, which are perturbed and cut; its second half is what keys are compared in")
      .shows_default();
  app.add("--scale", sensitivity.scale, "length of the noise in a channel against that of a head's vector")
      .shows_default()
      .check(OptionCheck::kPositive);
  app.add("--seed", sensitivity.seed, "seed of the noise");
  app.add("--cut-to", arguments->kept_tokens,
          "tokens that SnapKV leaves one layer while all others keep theirs: what importances come from")
      .shows_default()
      .check(OptionCheck::kPositive);
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
