#include "runtime/policy/token_statistics.h"

#include <utility>

#include "runtime/base/checked.h"

namespace foldkv {

template <typename Number>
Status check_statistics(const TokenStatisticsOf<Number>& statistics) {
  const std::optional<int64_t> size = checked_multiply({statistics.query_heads, statistics.tokens});
  if (!size.has_value() || statistics.kv_heads < 1 || statistics.query_heads < 1 || statistics.rows < 1 ||
      statistics.query_heads % statistics.kv_heads != 0) {
    return argument_error(
        "statistics", absl::StrCat("statistics: got ", statistics.query_heads, " query heads, ", statistics.kv_heads,
                                   " KV heads, ", statistics.tokens, " tokens, ", statistics.rows, " rows"));
  }
  const std::pair<absl::string_view, const std::vector<Number>*> vectors[] = {{"sums", &statistics.sums},
                                                                              {"squares", &statistics.squares},
                                                                              {"maxima", &statistics.maxima},
                                                                              {"below", &statistics.below},
                                                                              {"entropies", &statistics.entropies}};
  for (const auto& [name, vector] : vectors) {
    if (vector->empty() || std::ssize(*vector) == *size) continue;
    return argument_error(name, absl::StrCat(name, ": got ", vector->size(), " numbers, expected 0 or ", *size));
  }
  return absl::OkStatus();
}

template <typename Number>
Status check_columns(const TokenStatisticsOf<Number>& statistics, TokenRange range, const std::vector<Number>& vector,
                     absl::string_view needed) {
  FOLDKV_RETURN_IF_ERROR(check_statistics(statistics));
  if (range.first < 0 || range.count < 0 || range.first > statistics.tokens - range.count) {
    return argument_error(
        "range", absl::StrCat("range: got ", range.count, " tokens from ", range.first, " of ", statistics.tokens));
  }
  if (!vector.empty() || statistics.tokens == 0) return absl::OkStatus();
  return argument_error(needed, absl::StrCat(needed, ": needed here, but absent"));
}

template Status check_statistics(const TokenStatisticsOf<float>&);
template Status check_statistics(const TokenStatisticsOf<double>&);
template Status check_columns(const TokenStatisticsOf<float>&, TokenRange, const std::vector<float>&,
                              absl::string_view);
template Status check_columns(const TokenStatisticsOf<double>&, TokenRange, const std::vector<double>&,
                              absl::string_view);

}  // namespace foldkv
