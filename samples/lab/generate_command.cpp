#include "samples/lab/generate_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "samples/lab/drift.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/full_attention.h"
#include "samples/lab/generate.h"
#include "samples/lab/layer_numbers.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/named_policy.h"
#include "samples/lab/profile_file.h"
#include "samples/lab/progress.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

enum class CacheChoice { kFull, kFoldkv, kBoth };

struct Arguments {
  ModelArguments model;
  RuntimeArguments runtime;
  SequenceArguments sequence;
  std::string profile;
  std::string plan;
  std::string prompt;
  int64_t prompt_tokens = 0;  // 0: all
  int64_t tokens = 128;
  CacheChoice cache = CacheChoice::kFoldkv;
  CacheFormat full_format = CacheFormat::kF16;
  bool chat = false;
  bool ignores_end = false;
  std::string policy;
  int64_t keep_tokens = 0;
  int32_t interval = -1;  // -1: the policy's own
  bool reindexed = false;
  std::string layers;
  double temperature = 0;
  uint64_t seed = 0;
};

// A run and what its cache held at the end.
struct Run {
  Generation generation;
  double bytes = 0;            // of the sequence
  double bytes_per_token = 0;  // what one more token costs once it is old
  double shared_bytes = 0;     // prepared profile and model
  double peak_bytes = 0;       // highest use of the budget; 0: not known
  int64_t exact_tokens = 0;
  int64_t latent_tokens = 0;
  double kept_share = 1;  // of the tokens of all KV heads
  EnergyShares energy;  // that compression lost
  EnergyShares expected_energy;
};

absl::StatusOr<std::vector<Token>> read_prompt(const Arguments& arguments, const Tokenizer& tokenizer) {
  std::string text = arguments.prompt;
  if (absl::StartsWith(text, "@")) {
    LAB_ASSIGN_OR_RETURN(text, read_text_file(text.substr(1)));
  }
  LAB_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenizer.encode_prompt(text));
  if (arguments.prompt_tokens > 0 && arguments.prompt_tokens < static_cast<int64_t>(tokens.size())) {
    tokens.resize(static_cast<size_t>(arguments.prompt_tokens));
  }
  if (!arguments.chat) return tokens;
  LAB_ASSIGN_OR_RETURN(std::vector<Token> turn, tokenizer.encode("<|im_start|>user\n"));
  LAB_ASSIGN_OR_RETURN(const std::vector<Token> answer, tokenizer.encode("<|im_end|>\n<|im_start|>assistant\n"));
  turn.insert(turn.end(), tokens.begin(), tokens.end());
  turn.insert(turn.end(), answer.begin(), answer.end());
  return turn;
}

absl::StatusOr<Generation> write(const Arguments& arguments, const LanguageModel& model, Attention& attention,
                                 ThreadPool& threads, const std::vector<Token>& prompt) {
  Decoder decoder(model.model, attention, threads);
  Sampler sampler(arguments.temperature, arguments.seed);
  std::optional<Progress> progress;
  progress.emplace("reading the prompt", static_cast<int64_t>(prompt.size()), "tokens");
  LAB_ASSIGN_OR_RETURN(Generation generation, generate(
                                                  decoder, *model.tokenizer, prompt,
                                                  {arguments.tokens, arguments.ignores_end}, sampler,
                                                  [&](const std::string& piece) {
                                                    progress.reset();
                                                    if (!arguments.model.json) std::cout << piece << std::flush;
                                                  },
                                                  [&](int64_t done) { progress->show(done); }));
  if (!arguments.model.json) std::cout << "\n" << std::flush;
  return generation;
}

absl::StatusOr<Run> run_full(const Arguments& arguments, const LanguageModel& model, ThreadPool& threads,
                             const std::vector<Token>& prompt) {
  const int64_t capacity = static_cast<int64_t>(prompt.size()) + arguments.tokens;
  FullAttention attention(model.model, arguments.full_format, capacity, threads);
  Run run;
  LAB_ASSIGN_OR_RETURN(run.generation, write(arguments, model, attention, threads, prompt));
  // What 16-bit numbers take, whatever the yardstick computes in.
  run.exact_tokens = attention.token_count();
  run.bytes_per_token = static_cast<double>(model.model.shape.full_token_bytes());
  run.bytes = run.bytes_per_token * static_cast<double>(attention.token_count());
  return run;
}

// The eviction that was asked for; nullopt: none.
absl::StatusOr<std::optional<Eviction>> read_eviction(const Arguments& arguments, int64_t layers) {
  if (arguments.policy.empty()) return std::nullopt;
  LayerNumbers numbers;
  if (!arguments.layers.empty()) {
    LAB_ASSIGN_OR_RETURN(numbers, load_layer_numbers(arguments.layers, layers));
  }
  LAB_ASSIGN_OR_RETURN(Eviction eviction,
                       named_policy(arguments.policy, {.tokens = arguments.keep_tokens}, numbers));
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_eviction own, "--policy", foldkv::find_policy(arguments.policy.c_str()));
  eviction.settings.interval = arguments.interval >= 0 ? arguments.interval : own.interval;
  if (arguments.reindexed) eviction.settings.reindexed = 1;
  return eviction;
}

absl::StatusOr<Run> run_foldkv(const Arguments& arguments, const LanguageModel& model, ThreadPool& threads,
                               const foldkv::Profile* profile, const std::vector<Token>& prompt) {
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvHost> host, arguments.runtime.create_host(model, threads));
  FoldkvAttention::Options options = arguments.sequence.options();
  options.plan = arguments.plan;
  LAB_ASSIGN_OR_RETURN(options.eviction, read_eviction(arguments, model.model.shape.layer_count));
  LAB_ASSIGN_OR_RETURN(const std::unique_ptr<FoldkvAttention> attention,
                       FoldkvAttention::create(*host, profile, options));
  Run run;
  LAB_ASSIGN_OR_RETURN(run.generation, write(arguments, model, *attention, threads, prompt));
  LAB_ASSIGN_OR_RETURN(const foldkv_sequence_stats stats, attention->stats());
  LAB_ASSIGN_OR_RETURN_FOLDKV(const foldkv_runtime_stats runtime, "reading the runtime's figures",
                              host->runtime().stats());
  run.bytes = static_cast<double>(stats.bytes);
  run.bytes_per_token = static_cast<double>(stats.token_bytes);
  run.shared_bytes = static_cast<double>(runtime.ledger.profile + runtime.ledger.model);
  run.peak_bytes = static_cast<double>(runtime.peak_bytes);
  run.exact_tokens = stats.exact_tokens;
  run.latent_tokens = stats.latent_tokens;
  run.kept_share = static_cast<double>(stats.held_head_tokens) / static_cast<double>(stats.fed_head_tokens);
  run.energy = measured_energy(stats);
  run.expected_energy = expected_energy(stats);
  return run;
}

nlohmann::json run_json(const Run& run) {
  const Generation& generation = run.generation;
  return {{"text", generation.text},
          {"tokens", generation.tokens},
          {"ended", generation.ended},
          {"prompt_tokens", generation.prompt_tokens},
          {"prefill_tokens_per_second", generation.prefill_rate()},
          {"decode_tokens_per_second", generation.decode_rate()},
          {"bytes", run.bytes},
          {"bytes_per_token", run.bytes_per_token},
          {"shared_bytes", run.shared_bytes},
          {"peak_bytes", run.peak_bytes},
          {"exact_tokens", run.exact_tokens},
          {"latent_tokens", run.latent_tokens},
          {"kept_share", run.kept_share},
          {"energy_out_of_basis", {{"keys", run.energy.keys}, {"values", run.energy.values}}},
          {"expected_energy_out_of_basis",
           {{"keys", run.expected_energy.keys}, {"values", run.expected_energy.values}}}};
}

std::string run_text(const char* name, const Run& run, double full_bytes, double full_bytes_per_token) {
  const Generation& generation = run.generation;
  std::string text = absl::StrFormat(
      "%-7s prefill %.1f tokens/s, decode %.1f tokens/s; %d tokens: %d exact, %d latent\n"
      "        cache %s (%.2f times smaller than 16 bit), each old token %.0f B (%.2f times smaller)\n",
      name, generation.prefill_rate(), generation.decode_rate(), run.exact_tokens + run.latent_tokens, run.exact_tokens,
      run.latent_tokens, byte_text(run.bytes), full_bytes / run.bytes, run.bytes_per_token,
      full_bytes_per_token / run.bytes_per_token);
  if (run.kept_share < 1) text += absl::StrFormat("        %.1f%% of the tokens kept\n", 100 * run.kept_share);
  if (run.peak_bytes > 0) {
    text += absl::StrFormat("        shared by all sequences %s, peak with scratch %s\n", byte_text(run.shared_bytes),
                            byte_text(run.peak_bytes));
  }
  return text;
}

int64_t common_tokens(const Run& full, const Run& foldkv) {
  const std::vector<Token>& a = full.generation.tokens;
  const std::vector<Token>& b = foldkv.generation.tokens;
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

void print(const Arguments& arguments, const LanguageModel& model, const std::optional<Run>& full,
           const std::optional<Run>& foldkv) {
  if (arguments.model.json) {
    nlohmann::json json = {{"model", model.name}, {"threads", arguments.model.thread_count()}};
    if (full.has_value()) json["full"] = run_json(*full);
    if (foldkv.has_value()) json["foldkv"] = run_json(*foldkv);
    if (full.has_value() && foldkv.has_value()) json["equal_first_tokens"] = common_tokens(*full, *foldkv);
    print_json(json);
    return;
  }
  const double per_token = static_cast<double>(model.model.shape.full_token_bytes());
  std::cout << "\n";
  if (full.has_value()) std::cout << run_text("full", *full, full->bytes, per_token);
  if (foldkv.has_value()) {
    const double tokens = static_cast<double>(foldkv->exact_tokens + foldkv->latent_tokens);
    std::cout << run_text("foldkv", *foldkv, per_token * tokens, per_token);
  }
  if (full.has_value() && foldkv.has_value()) {
    std::cout << absl::StrFormat("the first %d tokens are equal\n", common_tokens(*full, *foldkv));
  }
  std::cout << std::flush;
}

absl::Status run(const Arguments& arguments) {
  LAB_ASSIGN_OR_RETURN(const LanguageModel model, arguments.model.load());
  LAB_ASSIGN_OR_RETURN(const std::vector<Token> prompt, read_prompt(arguments, *model.tokenizer));
  std::optional<foldkv::Profile> profile;
  if (!arguments.profile.empty()) {
    LAB_ASSIGN_OR_RETURN(profile, load_profile(arguments.profile));
  }
  ThreadPool threads(arguments.model.thread_count());
  if (static_cast<int64_t>(prompt.size()) + arguments.tokens > model.model.shape.context_length) {
    std::cerr << absl::StrFormat("note: %d tokens and %d more go beyond the %d that the model was trained for\n",
                                 prompt.size(), arguments.tokens, model.model.shape.context_length);
  }
  std::optional<Run> full;
  std::optional<Run> foldkv;
  if (arguments.cache != CacheChoice::kFoldkv) {
    if (!arguments.model.json) std::cout << "--- full cache\n" << std::flush;
    LAB_ASSIGN_OR_RETURN(full, run_full(arguments, model, threads, prompt));
  }
  if (arguments.cache != CacheChoice::kFull) {
    if (!arguments.model.json) std::cout << "--- foldkv\n" << std::flush;
    LAB_ASSIGN_OR_RETURN(foldkv,
                         run_foldkv(arguments, model, threads, profile.has_value() ? &*profile : nullptr, prompt));
  }
  print(arguments, model, full, foldkv);
  if (foldkv.has_value()) std::cerr << drift_warning("this text", foldkv->energy, foldkv->expected_energy);
  return absl::OkStatus();
}

}  // namespace

void add_generate_command(CLI::App& program, Command* command) {
  const auto arguments = std::make_shared<Arguments>();
  OptionList app(program, "generate", "write text after a prompt");
  arguments->model.add_to(app);
  arguments->runtime.add_to(app);
  arguments->sequence.add_to(app);
  app.add("--plan", arguments->plan, "plan of the profile; default: its first").check(plan_name());
  app.add("--profile", arguments->profile, "profile; without one FoldKV keeps everything exact")
      .check(OptionCheck::kExistingFile);
  app.add("--prompt", arguments->prompt, "text, or @FILE").required();
  app.add("--prompt-tokens", arguments->prompt_tokens, "use only the first tokens of the prompt");
  app.add("--tokens", arguments->tokens, "tokens to write").check(OptionCheck::kPositive).shows_default();
  app.add_choice<CacheChoice>(
      "--cache", arguments->cache,
      {{"full", CacheChoice::kFull}, {"foldkv", CacheChoice::kFoldkv}, {"both", CacheChoice::kBoth}},
      "full, foldkv (default) or both, one after the other");
  app.add_choice<CacheFormat>("--full-dtype", arguments->full_format,
                              {{"f32", CacheFormat::kF32}, {"f16", CacheFormat::kF16}},
                              "number format of the full cache, default f16");
  app.add_flag("--chat", arguments->chat, "the prompt is a user's message (ChatML, as SmolLM2 and Qwen use it)");
  app.add_flag("--ignore-end", arguments->ignores_end, "go on where the model ends the text");
  Option policy = app.add("--policy", arguments->policy, "eviction policy; evaluate --help lists them");
  Option keep =
      app.add("--keep-tokens", arguments->keep_tokens, "tokens that it leaves each KV head and layer on average")
          .check(OptionCheck::kPositive)
          .needs(policy);
  policy.needs(keep);
  app.add("--interval", arguments->interval,
          "tokens beyond these at which it evicts again while writing; 0: never; default: as its authors do")
      .check(OptionCheck::kNonNegative)
      .needs(policy);
  app.add_flag("--reindex", arguments->reindexed, "kept tokens are read at positions 0, 1, 2, ... instead of their own")
      .needs(policy);
  app.add("--layers", arguments->layers, "file that the command layers wrote, for policies that need it")
      .check(OptionCheck::kExistingFile)
      .needs(policy);
  app.add("--temperature", arguments->temperature, "0: always the likeliest token")
      .check(OptionCheck::kNonNegative)
      .shows_default();
  app.add("--seed", arguments->seed, "seed of the choice");
  app.when_chosen([arguments, command] { *command = [arguments] { return run(*arguments); }; });
}

}  // namespace foldkv_lab
