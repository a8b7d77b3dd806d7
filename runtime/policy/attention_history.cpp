#include "runtime/policy/attention_history.h"

#include "runtime/policy/row_reduction.h"

namespace foldkv {

template <typename Number>
StatusOr<ScoreTable> extend_history(const ScoreTable& history, const TokenStatisticsOf<Number>& statistics,
                                    HistoryKind kind, double decay) {
  if (!(decay >= 0.0 && decay <= 1.0)) {
    return argument_error("decay", absl::StrCat("decay: got ", decay, ", expected 0 to 1"));
  }
  FOLDKV_RETURN_IF_ERROR(check_score_table("history", history));
  const RowReduction rows = kind == HistoryKind::kBelowShare ? RowReduction::kNegatedBelow : RowReduction::kSum;
  FOLDKV_ASSIGN_OR_RETURN(ScoreTable extended, reduce_rows(statistics, rows, 0.0, {0, statistics.tokens}));
  if (history.heads == 0) return extended;
  if (history.heads != extended.heads || history.tokens > extended.tokens) {
    return argument_error(
        "history", absl::StrCat("history: got ", history.heads, " heads x ", history.tokens, " tokens, expected ",
                                extended.heads, " x ", extended.tokens, " or fewer"));
  }
  for (int64_t head = 0; head < history.heads; ++head) {
    const std::span<const double> past = history.head(head);
    const std::span<double> sums = extended.head(head);
    for (size_t t = 0; t < past.size(); ++t) sums[t] += decay * past[t];
  }
  return extended;
}

StatusOr<ScoreTable> compact_history(const ScoreTable& history, std::span<const std::vector<int32_t>> kept) {
  FOLDKV_RETURN_IF_ERROR(check_score_table("history", history));
  if (std::ssize(kept) != history.heads) {
    return argument_error("kept", absl::StrCat("kept: got ", kept.size(), " lists, expected ", history.heads));
  }
  ScoreTable compacted(history.heads, kept.empty() ? 0 : std::ssize(kept[0]));
  for (int64_t head = 0; head < history.heads; ++head) {
    const std::vector<int32_t>& list = kept[static_cast<size_t>(head)];
    bool fits = std::ssize(list) == compacted.tokens;
    for (const int32_t token : list) fits = fits && token >= 0 && token < history.tokens;
    if (!fits) {
      const std::string name = absl::StrCat("kept[", head, "]");
      return argument_error(name, absl::StrCat(name, ": not ", compacted.tokens, " indices below ", history.tokens));
    }
    for (size_t t = 0; t < list.size(); ++t) {
      compacted.head(head)[t] = history.head(head)[static_cast<size_t>(list[t])];
    }
  }
  return compacted;
}

template StatusOr<ScoreTable> extend_history(const ScoreTable&, const TokenStatisticsOf<float>&, HistoryKind, double);
template StatusOr<ScoreTable> extend_history(const ScoreTable&, const TokenStatisticsOf<double>&, HistoryKind, double);

}  // namespace foldkv
