#include "runtime/policy/cake_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

Status check_amount(absl::string_view argument, double amount) {
  if (amount >= 0.0 && std::isfinite(amount)) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(argument, ": got ", amount, ", expected 0 or more"));
}

Status check_temperature(absl::string_view argument, double temperature) {
  if (temperature > 0.0 && std::isfinite(temperature)) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(argument, ": got ", temperature, ", expected above 0"));
}

template <typename Number, typename Column>
double sum_columns(const TokenStatisticsOf<Number>& statistics, TokenRange range, const Column& column) {
  double sum = 0.0;
  for (int64_t head = 0; head < statistics.query_heads; ++head) {
    for (int64_t t = range.first; t < range.first + range.count; ++t) {
      sum += column(static_cast<size_t>(head * statistics.tokens + t));
    }
  }
  return sum;
}

// `amount` tokens, evenly, the rest of the division to the first; taken away when negative. Nobody who is at the cap
// gets any and nobody who has one token loses it.
void spread(std::vector<int64_t>& budgets, int64_t amount, int64_t cap) {
  std::vector<size_t> open;
  for (size_t layer = 0; layer < budgets.size(); ++layer) {
    if (amount > 0 ? budgets[layer] < cap : budgets[layer] > 1) open.push_back(layer);
  }
  if (open.empty()) return;
  const int64_t sign = amount < 0 ? -1 : 1;
  const int64_t each = std::abs(amount) / std::ssize(open);
  const int64_t rest = std::abs(amount) % std::ssize(open);
  for (size_t i = 0; i < open.size(); ++i) {
    budgets[open[i]] += sign * (each + (static_cast<int64_t>(i) < rest ? 1 : 0));
  }
}

}  // namespace

template <typename Number>
StatusOr<double> attention_entropy(const TokenStatisticsOf<Number>& statistics, TokenRange range) {
  FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.entropies, "entropies"));
  return sum_columns(statistics, range, [&](size_t i) { return static_cast<double>(statistics.entropies[i]); });
}

template <typename Number>
StatusOr<double> temporal_variance(const TokenStatisticsOf<Number>& statistics, TokenRange range) {
  FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.sums, "sums"));
  FOLDKV_RETURN_IF_ERROR(check_columns(statistics, range, statistics.squares, "squares"));
  if (statistics.rows == 1) return 0.0;
  const auto rows = static_cast<double>(statistics.rows);
  return sum_columns(statistics, range, [&](size_t i) {
    const auto sum = static_cast<double>(statistics.sums[i]);
    return std::max(0.0, static_cast<double>(statistics.squares[i]) - sum * sum / rows) / (rows - 1.0);
  });
}

StatusOr<double> cake_preference(double entropy, double variance, double entropy_temperature,
                                 double variance_temperature) {
  FOLDKV_RETURN_IF_ERROR(check_amount("entropy", entropy));
  FOLDKV_RETURN_IF_ERROR(check_amount("variance", variance));
  FOLDKV_RETURN_IF_ERROR(check_temperature("entropy_temperature", entropy_temperature));
  FOLDKV_RETURN_IF_ERROR(check_temperature("variance_temperature", variance_temperature));
  return std::pow(entropy, 1.0 / entropy_temperature) * std::pow(variance, 1.0 / variance_temperature);
}

StatusOr<std::vector<int64_t>> cake_author_budgets(std::span<const double> preferences, int64_t total, int64_t cap) {
  FOLDKV_RETURN_IF_ERROR(check_range("total", total, 0, std::numeric_limits<int64_t>::max()));
  FOLDKV_RETURN_IF_ERROR(check_range("cap", cap, 0, std::numeric_limits<int64_t>::max()));
  for (size_t layer = 0; layer < preferences.size(); ++layer) {
    FOLDKV_RETURN_IF_ERROR(check_amount(absl::StrCat("preferences[", layer, "]"), preferences[layer]));
  }
  const double sum = std::accumulate(preferences.begin(), preferences.end(), 0.0);
  if (!preferences.empty() && sum == 0.0) return argument_error("preferences", "preferences: all are 0");
  std::vector<int64_t> budgets;
  int64_t excess = 0;
  for (const double preference : preferences) {
    const auto whole = static_cast<int64_t>(preference / sum * static_cast<double>(total));
    budgets.push_back(std::min(whole, cap));
    excess += whole - budgets.back();
  }
  spread(budgets, excess, cap);
  spread(budgets, total - std::accumulate(budgets.begin(), budgets.end(), int64_t{0}), cap);
  for (int64_t& budget : budgets) budget = std::min(budget, cap);
  return budgets;
}

template StatusOr<double> attention_entropy(const TokenStatisticsOf<float>&, TokenRange);
template StatusOr<double> attention_entropy(const TokenStatisticsOf<double>&, TokenRange);
template StatusOr<double> temporal_variance(const TokenStatisticsOf<float>&, TokenRange);
template StatusOr<double> temporal_variance(const TokenStatisticsOf<double>&, TokenRange);

}  // namespace foldkv
