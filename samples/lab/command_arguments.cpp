#include "samples/lab/command_arguments.h"

#include <algorithm>
#include <iostream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace foldkv_lab {

void ModelArguments::add_to(OptionList& app) {
  app.add("--model", model, "model file: GGUF (llama, qwen2) or llama2.c").required().check(OptionCheck::kExistingFile);
  app.add("--tokenizer", tokenizer, "tokenizer file of a llama2.c model; default: the one beside the model")
      .check(OptionCheck::kExistingFile);
  app.add("--threads", threads, "threads; default: one for each core").between(0, 256);
  app.add_flag("--json", json, "print the result as JSON");
}

absl::StatusOr<LanguageModel> ModelArguments::load() const { return load_language_model(model, tokenizer); }

int ModelArguments::thread_count() const {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void RuntimeArguments::add_to(OptionList& app) {
  app.add("--backend", options.backend, "backend of FoldKV: cpu (default) or reference");
  app.add("--instruction-set", options.instruction_set, "portable, avx2, avx512, avx512vnni or avx512amx; default: the best");
  app.add("--budget-mib", budget_mebibytes, "byte budget of the cache in MiB")
      .between(1, int64_t{1} << 24)
      .shows_default();
  app.add_flag("--deterministic", options.deterministic, "products of hidden states do not depend on the step size");
}

absl::StatusOr<std::unique_ptr<FoldkvHost>> RuntimeArguments::create_host(const LanguageModel& model,
                                                                          ThreadPool& threads) const {
  FoldkvHostOptions host_options = options;
  host_options.budget_bytes = budget_mebibytes << 20;
  return FoldkvHost::create(model.model, model.name, host_options, threads);
}

void SequenceArguments::add_to(OptionList& app) {
  app.add_choice<FoldkvInput>("--input", input, {{"hidden", FoldkvInput::kHidden}, {"qkv", FoldkvInput::kQkv}},
                              "what FoldKV is given: hidden states (default) or q, k, v");
  app.add_choice<int32_t>("--dtype", dtype, {{"f32", FOLDKV_F32}, {"f16", FOLDKV_F16}, {"bf16", FOLDKV_BF16}},
                          "number format of exact tokens, default f16");
  app.add_choice<int32_t>("--mean", mean, {{"sequence", FOLDKV_MEAN_SEQUENCE}, {"profile", FOLDKV_MEAN_PROFILE}},
                          "mean that is subtracted before projection; default: the sequence's own");
  app.add_choice<int32_t>("--arithmetic", arithmetic,
                          {{"exact", FOLDKV_ARITHMETIC_EXACT}, {"fast", FOLDKV_ARITHMETIC_FAST}},
                          "what attention computes with; default exact");
  constexpr int64_t kMost = 1 << 20;
  app.add("--sinks", sinks, "first tokens that stay exact").between(0, kMost).shows_default();
  app.add("--recent", recent, "last tokens that stay exact").between(0, kMost).shows_default();
  app.add("--fold", fold, "generated tokens are folded in runs of this many; 0: never")
      .between(0, kMost)
      .shows_default();
}

FoldkvAttention::Options SequenceArguments::options() const {
  FoldkvAttention::Options result;
  result.input = input;
  result.sequence.dtype = dtype;
  result.sequence.mean = mean;
  result.sequence.arithmetic = arithmetic;
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
