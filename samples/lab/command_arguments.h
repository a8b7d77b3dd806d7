#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "foldkv/foldkv.h"
#include "nlohmann/json_fwd.hpp"
#include "samples/lab/foldkv_attention.h"
#include "samples/lab/foldkv_host.h"
#include "samples/lab/language_model.h"
#include "samples/lab/option_list.h"

namespace CLI {
class App;
}

namespace foldkv_lab {

// What a chosen subcommand runs.
using Command = std::function<absl::Status()>;

// --model, --tokenizer, --threads, --json
struct ModelArguments {
  std::string model;
  std::string tokenizer;
  int threads = 0;  // 0: one for each core
  bool json = false;

  void add_to(OptionList& app);
  [[nodiscard]] absl::StatusOr<LanguageModel> load() const;
  [[nodiscard]] int thread_count() const;
};

// --backend, --instruction-set, --budget-mib
struct RuntimeArguments {
  FoldkvHostOptions options;
  uint64_t budget_mebibytes = 4096;

  void add_to(OptionList& app);
  [[nodiscard]] absl::StatusOr<std::unique_ptr<FoldkvHost>> create_host(const LanguageModel& model,
                                                                        ThreadPool& threads) const;
};

// --input, --dtype, --sinks, --recent, --fold, --mean, --arithmetic
struct SequenceArguments {
  FoldkvInput input = FoldkvInput::kHidden;
  int32_t dtype = FOLDKV_F16;
  int32_t mean = FOLDKV_MEAN_DEFAULT;
  int32_t arithmetic = FOLDKV_ARITHMETIC_EXACT;
  int32_t sinks = 4;
  int32_t recent = 64;
  int32_t fold = 64;  // 0: generated tokens stay exact

  void add_to(OptionList& app);
  [[nodiscard]] FoldkvAttention::Options options() const;
};

// A check of options that name a plan: an empty name would be taken for none.
[[nodiscard]] std::function<std::string(const std::string&)> plan_name();

// "128x8,64x4": adjacent bands of latent coordinates, each as width x bits.
[[nodiscard]] absl::StatusOr<std::vector<foldkv_band>> parse_bands(const std::string& text);

// One line on the standard output. Bytes that are not UTF-8 are replaced.
void print_json(const nlohmann::json& json);

// "23.4 KiB"
[[nodiscard]] std::string byte_text(double bytes);

}  // namespace foldkv_lab
