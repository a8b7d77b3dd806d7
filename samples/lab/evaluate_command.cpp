#include "samples/lab/evaluate_command.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/evaluate.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::string profile;
  std::vector<std::string> texts;
  int64_t length = 1024;
  int64_t windows = 4;
  EvaluationOptions evaluation;
};

double ratio(uint64_t full, uint64_t compressed) {
  return compressed == 0 ? 0 : static_cast<double>(full) / static_cast<double>(compressed);
}

nlohmann::json figures_json(const EvaluationFigures& figures) {
  return {{"windows", figures.windows},
          {"positions", figures.positions},
          {"kl", figures.kl},
          {"top1_agreement", figures.top1_agreement},
          {"loss_full", figures.full_loss},
          {"loss_compressed", figures.compressed_loss},
          {"loss_difference", figures.loss_difference()},
          {"perplexity_full", figures.full_perplexity()},
          {"perplexity_compressed", figures.compressed_perplexity()}};
}

nlohmann::json bytes_json(const foldkv_sequence_stats& stats) {
  const foldkv_ledger& ledger = stats.ledger;
  return {{"tokens", stats.tokens},
          {"exact_tokens", stats.exact_tokens},
          {"latent_tokens", stats.latent_tokens},
          {"bytes", stats.bytes},
          {"full_bytes", stats.full_cache_bytes},
          {"ratio", ratio(stats.full_cache_bytes, stats.bytes)},
          {"by_role",
           {{"exact", ledger.exact},
            {"latent", ledger.latent},
            {"correction", ledger.correction},
            {"mean", ledger.mean},
            {"positions", ledger.positions}}}};
}

nlohmann::json evaluation_json(const Evaluation& evaluation, const Arguments& arguments, const LanguageModel& model) {
  const foldkv_sequence_stats& stats = evaluation.bytes.after_prefix;
  nlohmann::json texts = nlohmann::json::array();
  for (const auto& [name, figures] : evaluation.texts) {
    texts.push_back(figures_json(figures));
    texts.back()["text"] = name;
  }
  return {{"model", model.name},
          {"profile", arguments.profile},
          {"length", arguments.length},
          {"prefix", arguments.evaluation.prefix},
          {"all", figures_json(evaluation.all)},
          {"texts", texts},
          {"latents",
           {{"full_bytes_per_token", stats.grouped_token_bytes},
            {"bytes_per_token", stats.latent_token_bytes},
            {"ratio", ratio(stats.grouped_token_bytes, stats.latent_token_bytes)}}},
          {"after_prefix", bytes_json(stats)},
          {"after_window", bytes_json(evaluation.bytes.after_window)},
          {"seconds_full", evaluation.full_seconds},
          {"seconds_compressed", evaluation.compressed_seconds}};
}

std::string figures_row(const std::string& name, const EvaluationFigures& figures) {
  return absl::StrFormat("%-28s %7d %9.5f %7.3f %+9.5f %9.3f %9.3f\n", name, figures.windows, figures.kl,
                         figures.top1_agreement, figures.loss_difference(), figures.full_perplexity(),
                         figures.compressed_perplexity());
}

std::string bytes_row(const char* name, const foldkv_sequence_stats& stats) {
  return absl::StrFormat("%s: %d tokens, %d exact and %d latent: %d bytes instead of %d, %.2f times smaller\n", name,
                         stats.tokens, stats.exact_tokens, stats.latent_tokens, stats.bytes, stats.full_cache_bytes,
                         ratio(stats.full_cache_bytes, stats.bytes));
}

void print(const Evaluation& evaluation) {
  std::cout << absl::StrFormat("%-28s %7s %9s %7s %9s %9s %9s\n", "text", "windows", "KL nats", "top-1", "loss +",
                               "ppl full", "ppl");
  for (const auto& [name, figures] : evaluation.texts) {
    std::cout << figures_row(std::filesystem::path(name).filename().string().substr(0, 28), figures);
  }
  if (evaluation.texts.size() > 1) std::cout << figures_row("mean of the texts", evaluation.all);
  const foldkv_sequence_stats& stats = evaluation.bytes.after_prefix;
  std::cout << absl::StrFormat("latents alone: %d bytes per token instead of %d, %.2f times smaller\n",
                               stats.latent_token_bytes, stats.grouped_token_bytes,
                               ratio(stats.grouped_token_bytes, stats.latent_token_bytes))
            << bytes_row("in all, after the prefix", stats)
            << bytes_row("in all, after the window", evaluation.bytes.after_window)
            << absl::StrFormat("time: full cache %.1f s, compressed %.1f s\n", evaluation.full_seconds,
                               evaluation.compressed_seconds)
            << std::flush;
}

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  std::optional<foldkv::Profile> profile;
  if (!arguments.profile.empty()) {
    LAB_ASSIGN_OR_RETURN(profile, load_profile(arguments.profile));
  }
  LAB_ASSIGN_OR_RETURN(const std::vector<TextSample> windows,
                       sample_texts(arguments.texts, *model.tokenizer, arguments.length, arguments.windows));
  ThreadPool threads(arguments.model.thread_count());
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  EvaluationOptions options = arguments.evaluation;
  options.attention = arguments.sequence.options();
  Progress progress("evaluating", static_cast<int64_t>(windows.size()), "windows");
  progress.show(0);
  LAB_ASSIGN_OR_RETURN(const Evaluation evaluation, evaluate(*host, profile.has_value() ? &*profile : nullptr, windows,
                                                             options, [&](int64_t done) { progress.show(done); }));
  if (arguments.model.json) {
    print_json(evaluation_json(evaluation, arguments, model));
  } else {
    print(evaluation);
  }
  return absl::OkStatus();
}

}  // namespace

void add_evaluate_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  // The protocol keeps what is fed after the prefix exact.
  arguments->sequence.fold = 0;
  CLI::App* app = program.add_subcommand("evaluate", "measure what compression loses, against the full cache");
  arguments->model.add_to(*app);
  arguments->runtime.add_to(*app);
  arguments->sequence.add_to(*app);
  app->add_option("--profile", arguments->profile, "profile; without one FoldKV keeps everything exact")
      ->check(CLI::ExistingFile);
  app->add_option("--text", arguments->texts, "text files")->required()->check(CLI::ExistingFile);
  app->add_option("--length", arguments->length, "tokens of a window")->capture_default_str();
  app->add_option("--prefix", arguments->evaluation.prefix, "tokens of it that are fed first and compressed")
      ->capture_default_str();
  app->add_option("--windows", arguments->windows, "most windows, spread evenly over all texts")->capture_default_str();
  app->add_option("--feed", arguments->evaluation.feed, "tokens per step of the rest")->capture_default_str();
  app->callback([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
