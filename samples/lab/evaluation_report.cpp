#include "samples/lab/evaluation_report.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace foldkv_lab {
namespace {

double ratio(uint64_t full, uint64_t compressed) {
  return compressed == 0 ? 0 : static_cast<double>(full) / static_cast<double>(compressed);
}

// Of the tokens that KV heads were fed, the share that they hold.
double kept_share(const foldkv_sequence_stats& stats) {
  return stats.fed_head_tokens == 0
             ? 1
             : static_cast<double>(stats.held_head_tokens) / static_cast<double>(stats.fed_head_tokens);
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
          {"perplexity_compressed", figures.compressed_perplexity()},
          {"window_kl", figures.window_kl},
          {"energy_out_of_basis", {{"keys", figures.energy.keys}, {"values", figures.energy.values}}}};
}

nlohmann::json bytes_json(const foldkv_sequence_stats& stats) {
  const foldkv_ledger& ledger = stats.ledger;
  return {{"tokens", stats.tokens},
          {"exact_tokens", stats.exact_tokens},
          {"latent_tokens", stats.latent_tokens},
          {"held_head_tokens", stats.held_head_tokens},
          {"fed_head_tokens", stats.fed_head_tokens},
          {"kept", kept_share(stats)},
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

nlohmann::json codec_json(const CodecEvaluation& codec) {
  const foldkv_sequence_stats& stats = codec.bytes.after_prefix;
  nlohmann::json texts = nlohmann::json::array();
  for (const auto& [name, figures] : codec.texts) {
    texts.push_back(figures_json(figures));
    texts.back()["text"] = name;
  }
  return {{"name", codec.codec},
          {"all", figures_json(codec.all)},
          {"expected_energy_out_of_basis",
           {{"keys", codec.expected_energy.keys}, {"values", codec.expected_energy.values}}},
          {"texts", texts},
          {"latents",
           {{"full_bytes_per_token", stats.full_token_bytes},
            {"bytes_per_token", stats.token_bytes},
            {"ratio", ratio(stats.full_token_bytes, stats.token_bytes)}}},
          {"after_prefix", bytes_json(stats)},
          {"after_window", bytes_json(codec.bytes.after_window)},
          {"seconds", codec.seconds}};
}

// Columns of names are as wide as their longest name.
template <typename Entries>
int name_width(const Entries& entries) {
  size_t width = sizeof("codec") - 1;
  for (const auto& entry : entries) width = std::max(width, entry.codec.size());
  return static_cast<int>(width);
}

std::string loss_row(const std::string& codec, int width, const std::string& text, const EvaluationFigures& figures) {
  return absl::StrFormat("%-*s  %-28s %7d %9.5f %7.3f %+9.5f %9.3f %9.3f\n", width, codec, text, figures.windows,
                         figures.kl, figures.top1_agreement, figures.loss_difference(), figures.full_perplexity(),
                         figures.compressed_perplexity());
}

std::string loss_table(const Evaluation& evaluation) {
  const int width = name_width(evaluation.codecs);
  std::string table = absl::StrFormat("%-*s  %-28s %7s %9s %7s %9s %9s %9s\n", width, "codec", "text", "windows",
                                      "KL nats", "top-1", "loss +", "ppl full", "ppl");
  for (const CodecEvaluation& codec : evaluation.codecs) {
    for (const auto& [name, figures] : codec.texts) {
      const std::string text = std::filesystem::path(name).filename().string().substr(0, 28);
      table += loss_row(codec.codec, width, text, figures);
    }
    if (codec.texts.size() > 1) table += loss_row(codec.codec, width, "mean of the texts", codec.all);
  }
  return table;
}

std::string bytes_table(const Evaluation& evaluation) {
  const int width = name_width(evaluation.codecs);
  const EvaluationBytes& bytes = evaluation.codecs[0].bytes;
  std::string table = absl::StrFormat(
      "times smaller than 16-bit numbers: one compressed token, and everything, after the prefix of %d and the window of "
      "%d tokens; kept: the share of the prefix's tokens that a KV head holds, on average\n"
      "%-*s  %9s %9s %9s %9s %12s %9s\n",
      bytes.after_prefix.tokens, bytes.after_window.tokens, width, "codec", "token", "prefix", "kept", "window",
      "B per token", "seconds");
  for (const CodecEvaluation& codec : evaluation.codecs) {
    const foldkv_sequence_stats& prefix = codec.bytes.after_prefix;
    const foldkv_sequence_stats& window = codec.bytes.after_window;
    absl::StrAppendFormat(&table, "%-*s  %9.2f %9.2f %9.4f %9.2f %12d %9.1f\n", width, codec.codec,
                          ratio(prefix.full_token_bytes, prefix.token_bytes),
                          ratio(prefix.full_cache_bytes, prefix.bytes), kept_share(prefix),
                          ratio(window.full_cache_bytes, window.bytes), prefix.token_bytes, codec.seconds);
  }
  return absl::StrCat(table, absl::StrFormat("full cache: %.1f seconds\n", evaluation.full_seconds));
}

void add_interval(const MeanInterval& interval, nlohmann::json* json) {
  (*json)["score"] = interval.mean;
  (*json)["score_low"] = interval.low;
  (*json)["score_high"] = interval.high;
}

}  // namespace

nlohmann::json evaluation_json(const Evaluation& evaluation) {
  nlohmann::json codecs = nlohmann::json::array();
  for (const CodecEvaluation& codec : evaluation.codecs) codecs.push_back(codec_json(codec));
  return {{"codecs", codecs}, {"seconds_full", evaluation.full_seconds}};
}

std::string evaluation_warnings(const Evaluation& evaluation) {
  std::string warnings;
  for (const CodecEvaluation& codec : evaluation.codecs) {
    for (const auto& [text, figures] : codec.texts) {
      warnings += drift_warning(absl::StrCat(codec.codec, ", ", std::filesystem::path(text).filename().string()),
                                figures.energy, codec.expected_energy);
    }
  }
  return warnings;
}

std::string evaluation_table(const Evaluation& evaluation) {
  return absl::StrCat(loss_table(evaluation), "\n", bytes_table(evaluation));
}

nlohmann::json task_json(const TaskEvaluation& evaluation) {
  nlohmann::json full = {{"seconds", evaluation.full_seconds}};
  add_interval(evaluation.full, &full);
  nlohmann::json codecs = nlohmann::json::array();
  for (const CodecTaskFigures& codec : evaluation.codecs) {
    nlohmann::json entry = {
        {"name", codec.codec},  {"kl", codec.kl},          {"ratio", codec.ratio},
        {"kept", codec.kept}, {"seconds", codec.seconds}};
    add_interval(codec.score, &entry);
    if (evaluation.usable()) entry["retention"] = codec.retention;
    codecs.push_back(entry);
  }
  return {{"task", evaluation.task},
          {"trials", evaluation.trials},
          {"context_tokens", evaluation.context_tokens},
          {"usable", evaluation.usable()},
          {"full", full},
          {"codecs", codecs}};
}

std::string task_table(const TaskEvaluation& evaluation) {
  const int width = name_width(evaluation.codecs);
  const MeanInterval& full = evaluation.full;
  std::string table = absl::StrFormat(
      "task %s, %d trials of %.0f tokens; full cache %.3f [%.3f, %.3f] in %.1f seconds%s\n"
      "%-*s  %6s  %-14s %8s %9s %13s %7s %9s\n",
      evaluation.task, evaluation.trials, evaluation.context_tokens, full.mean, full.low, full.high,
      evaluation.full_seconds, evaluation.usable() ? "" : ": not usable, the model cannot do it", width, "codec",
      "score", "95%", "of full", "KL nats", "times smaller", "kept", "seconds");
  for (const CodecTaskFigures& codec : evaluation.codecs) {
    absl::StrAppendFormat(&table, "%-*s  %6.3f  [%.3f, %.3f] %8s %9.5f %13.2f %7.4f %9.1f\n", width, codec.codec,
                          codec.score.mean, codec.score.low, codec.score.high,
                          evaluation.usable() ? absl::StrFormat("%.3f", codec.retention) : "-", codec.kl, codec.ratio,
                          codec.kept, codec.seconds);
  }
  return table;
}

}  // namespace foldkv_lab
