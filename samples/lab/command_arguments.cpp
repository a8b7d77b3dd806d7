#include "samples/lab/command_arguments.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace foldkv_lab {

void ModelArguments::add_to(CLI::App& app) {
  app.add_option("--model", model, "model file: GGUF (llama, qwen2) or llama2.c")->required()->check(CLI::ExistingFile);
  app.add_option("--tokenizer", tokenizer, "tokenizer file of a llama2.c model; default: the one beside the model")
      ->check(CLI::ExistingFile);
  app.add_option("--threads", threads, "threads; default: one for each core")->check(CLI::Range(0, 256));
  app.add_flag("--json", json, "print the result as JSON");
}

absl::StatusOr<LanguageModel> ModelArguments::load() const { return load_language_model(model, tokenizer); }

int ModelArguments::thread_count() const {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void RuntimeArguments::add_to(CLI::App& app) {
  app.add_option("--backend", options.backend, "backend of FoldKV: cpu (default) or reference");
  app.add_option("--instruction-set", options.instruction_set, "portable, avx2 or avx512; default: the best");
  app.add_option("--budget-mib", budget_mebibytes, "byte budget of the cache in MiB")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str();
  app.add_flag("--deterministic", options.deterministic, "products of hidden states do not depend on the step size");
}

absl::StatusOr<std::unique_ptr<FoldkvHost>> RuntimeArguments::create_host(const LanguageModel& model,
                                                                          ThreadPool& threads) const {
  FoldkvHostOptions host_options = options;
  host_options.budget_bytes = budget_mebibytes << 20;
  return FoldkvHost::create(model.model, model.name, host_options, threads);
}

void SequenceArguments::add_to(CLI::App& app) {
  static const std::map<std::string, FoldkvInput> kInputs = {{"hidden", FoldkvInput::kHidden},
                                                             {"qkv", FoldkvInput::kQkv}};
  static const std::map<std::string, int32_t> kFormats = {
      {"f32", FOLDKV_F32}, {"f16", FOLDKV_F16}, {"bf16", FOLDKV_BF16}};
  static const std::map<std::string, int32_t> kMeans = {{"sequence", FOLDKV_MEAN_SEQUENCE},
                                                        {"profile", FOLDKV_MEAN_PROFILE}};
  app.add_option("--input", input, "what FoldKV is given: hidden states (default) or q, k, v")
      ->transform(CLI::CheckedTransformer(kInputs))
      ->option_text("hidden|qkv");
  app.add_option("--dtype", dtype, "number format of exact tokens, default f16")
      ->transform(CLI::CheckedTransformer(kFormats))
      ->option_text("f32|f16|bf16");
  app.add_option("--mean", mean, "mean that is subtracted before projection; default: the sequence's own")
      ->transform(CLI::CheckedTransformer(kMeans))
      ->option_text("sequence|profile");
  const CLI::Range counts(0, 1 << 20);
  app.add_option("--sinks", sinks, "first tokens that stay exact")->check(counts)->capture_default_str();
  app.add_option("--recent", recent, "last tokens that stay exact")->check(counts)->capture_default_str();
  app.add_option("--fold", fold, "generated tokens are folded in runs of this many; 0: never")
      ->check(counts)
      ->capture_default_str();
}

FoldkvAttention::Options SequenceArguments::options() const {
  FoldkvAttention::Options result;
  result.input = input;
  result.sequence.dtype = dtype;
  result.sequence.mean = mean;
  // The library reads zero as "default" and -1 as "none".
  result.sequence.sink_tokens = sinks == 0 ? -1 : sinks;
  result.sequence.recent_tokens = recent == 0 ? -1 : recent;
  result.sequence.fold_tokens = fold == 0 ? -1 : fold;
  return result;
}

std::function<std::string(const std::string&)> plan_name() {
  return [](const std::string& name) { return std::string(name.empty() ? "the name of a plan is not empty" : ""); };
}

absl::StatusOr<std::vector<foldkv_band>> parse_bands(const std::string& text) {
  std::vector<foldkv_band> bands;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> numbers = absl::StrSplit(part, 'x');
    foldkv_band band = {};
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &band.width) ||
        !absl::SimpleAtoi(numbers[1], &band.bits)) {
      return absl::InvalidArgumentError(absl::StrCat("band \"", part, "\", expected width x bits such as 128x4"));
    }
    bands.push_back(band);
  }
  return bands;
}

void print_json(const nlohmann::json& json) {
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

std::string byte_text(double bytes) {
  if (bytes < 1024) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1024 * 1024) return absl::StrFormat("%.1f KiB", bytes / 1024);
  return absl::StrFormat("%.1f MiB", bytes / (1024 * 1024));
}

}  // namespace foldkv_lab
