#include "runtime/policy/apportion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

// With these, quotas are exact to less than half a token in their sum, and all sums of caps fit.
constexpr int64_t kLargestTotal = int64_t{1} << 36;
constexpr int64_t kMostEntries = 65'536;
// Lighter than this beside the largest weight is nothing: factors stay within the range of numbers.
constexpr double kNegligible = 0x1p-500;
constexpr double kRemainderGrid = 0x1p30;

struct Entry {
  double weight = 0.0;
  int64_t lower = 0;
  int64_t upper = 0;

  // The factors at which the quota leaves the lower and reaches the upper cap.
  [[nodiscard]] double leaves() const { return static_cast<double>(lower) / weight; }
  [[nodiscard]] double arrives() const { return static_cast<double>(upper) / weight; }
  [[nodiscard]] double quota(double factor) const {
    return std::clamp(factor * weight, static_cast<double>(lower), static_cast<double>(upper));
  }
};

Status check_entry(double weight, int64_t lower, int64_t upper, size_t index) {
  if (!(weight >= 0.0) || !std::isfinite(weight)) {
    return argument_error(absl::StrCat("weights[", index, "]"),
                          absl::StrCat("weights[", index, "]: got ", weight, ", expected 0 or more"));
  }
  FOLDKV_RETURN_IF_ERROR(check_range(absl::StrCat("lower[", index, "]"), lower, 0, kLargestTotal));
  return check_range(absl::StrCat("upper[", index, "]"), upper, lower, std::numeric_limits<int64_t>::max());
}

int64_t sum_of(const std::vector<Entry>& entries, int64_t Entry::*cap) {
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.*cap;
  return sum;
}

std::vector<int64_t> caps_of(const std::vector<Entry>& entries, int64_t Entry::*cap) {
  std::vector<int64_t> caps;
  for (const Entry& entry : entries) caps.push_back(entry.*cap);
  return caps;
}

void scale_weights(std::vector<Entry>& entries) {
  double largest = 0.0;
  for (const Entry& entry : entries) largest = std::max(largest, entry.weight);
  for (Entry& entry : entries) {
    entry.weight = largest == 0.0 ? 1.0 : entry.weight / largest;
    if (entry.weight < kNegligible) entry.weight = 0.0;
  }
}

// Entries without weight share, equally, what the full others leave.
void serve_the_weightless(std::vector<Entry>& entries, int64_t total) {
  int64_t reachable = 0;
  for (const Entry& entry : entries) reachable += entry.weight > 0.0 ? entry.upper : entry.lower;
  if (reachable >= total) return;
  for (Entry& entry : entries) {
    if (entry.weight > 0.0) entry.lower = entry.upper;
    entry.weight = entry.weight > 0.0 ? 0.0 : 1.0;
  }
}

double quota_sum(const std::vector<Entry>& entries, double factor) {
  double sum = 0.0;
  for (const Entry& entry : entries) {
    sum += entry.weight > 0.0 ? entry.quota(factor) : static_cast<double>(entry.lower);
  }
  return sum;
}

// The sum of quotas rises with the factor, in straight pieces between the factors where a quota meets a cap: the piece
// that crosses `total` is looked for among those, and solved.
double solve_factor(const std::vector<Entry>& entries, int64_t total) {
  std::vector<double> corners;
  for (const Entry& entry : entries) {
    if (entry.weight > 0.0) corners.insert(corners.end(), {entry.leaves(), entry.arrives()});
  }
  std::sort(corners.begin(), corners.end());
  const auto reached = [&](double factor) { return quota_sum(entries, factor) >= static_cast<double>(total); };
  const auto found = std::partition_point(corners.begin(), corners.end(), [&](double c) { return !reached(c); });
  const double end = found == corners.end() ? corners.back() : *found;
  int64_t fixed = 0;
  double moving = 0.0;
  for (const Entry& entry : entries) {
    if (entry.weight == 0.0 || entry.leaves() >= end) {
      fixed += entry.lower;
    } else if (entry.arrives() < end) {
      fixed += entry.upper;
    } else {
      moving += entry.weight;
    }
  }
  return moving == 0.0 ? end : static_cast<double>(total - fixed) / moving;
}

std::vector<int64_t> round_quotas(const std::vector<Entry>& entries, double factor, int64_t total) {
  std::vector<int64_t> counts(entries.size());
  std::vector<double> remainders(entries.size());
  int64_t left = total;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const double quota = entry.weight > 0.0 ? entry.quota(factor) : static_cast<double>(entry.lower);
    const double whole = std::floor(quota);
    remainders[i] = std::round((quota - whole) * kRemainderGrid) / kRemainderGrid;
    counts[i] = static_cast<int64_t>(whole);
    if (remainders[i] == 1.0) {
      ++counts[i];
      remainders[i] = 0.0;
    }
    left -= counts[i];
  }
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  // A quota that is not whole is below its cap.
  for (size_t i = 0; left > 0 && i < order.size(); ++i, --left) ++counts[order[i]];
  return counts;
}

}  // namespace

StatusOr<std::vector<int64_t>> apportion(std::span<const double> weights, std::span<const int64_t> lower,
                                         std::span<const int64_t> upper, int64_t total) {
  const int64_t count = std::ssize(weights);
  FOLDKV_RETURN_IF_ERROR(check_range("weights", count, 0, kMostEntries));
  FOLDKV_RETURN_IF_ERROR(check_range("lower", std::ssize(lower), count, count));
  FOLDKV_RETURN_IF_ERROR(check_range("upper", std::ssize(upper), count, count));
  FOLDKV_RETURN_IF_ERROR(check_range("total", total, 0, kLargestTotal));
  std::vector<Entry> entries(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    FOLDKV_RETURN_IF_ERROR(check_entry(weights[i], lower[i], upper[i], i));
    // Nobody gets more than everything.
    entries[i] = {weights[i], lower[i], std::max(lower[i], std::min(upper[i], total))};
  }
  if (total <= sum_of(entries, &Entry::lower)) return caps_of(entries, &Entry::lower);
  if (total >= sum_of(entries, &Entry::upper)) return caps_of(entries, &Entry::upper);
  scale_weights(entries);
  serve_the_weightless(entries, total);
  return round_quotas(entries, solve_factor(entries, total), total);
}

StatusOr<std::vector<int64_t>> apportion(std::span<const double> weights, int64_t lower, int64_t upper, int64_t total) {
  const std::vector<int64_t> lowers(weights.size(), lower);
  const std::vector<int64_t> uppers(weights.size(), upper);
  return apportion(weights, lowers, uppers, total);
}

}  // namespace foldkv
