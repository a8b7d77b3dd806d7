#include "tests/backends/conformance/outcome.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace foldkv::test {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

std::string describe(const Field& field, size_t index, double expected, double actual) {
  return absl::StrCat(field.name, "[", index / static_cast<size_t>(field.row_width), "][",
                      index % static_cast<size_t>(field.row_width), "]: expected ", absl::StrCat(expected), ", got ",
                      absl::StrCat(actual), ", off by ", absl::StrCat(actual - expected));
}

double largest_of_row(const Field& field, size_t index) {
  const size_t width = static_cast<size_t>(field.row_width);
  const size_t first = index / width * width;
  double largest = 0.0;
  for (size_t i = first; i < std::min(first + width, field.numbers.size()); ++i) {
    if (std::isfinite(field.numbers[i])) largest = std::max(largest, std::abs(field.numbers[i]));
  }
  return largest;
}

std::string compare_numbers(const Field& expected, const Field& actual) {
  std::string worst;
  double worst_excess = 1.0;
  double largest = 0.0;
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    const double e = expected.numbers[i];
    const double a = actual.numbers[i];
    if (e == a) continue;
    if (!std::isfinite(e) || !std::isfinite(a)) return describe(expected, i, e, a);
    if (i % static_cast<size_t>(expected.row_width) == 0 || largest == 0.0) largest = largest_of_row(expected, i);
    const Tolerance& tolerance = expected.tolerance;
    const double allowed = tolerance.relative * std::abs(e) + tolerance.of_row * largest + tolerance.absolute;
    const double excess = allowed > 0.0 ? std::abs(a - e) / allowed : std::numeric_limits<double>::infinity();
    if (excess <= worst_excess) continue;
    worst_excess = excess;
    worst = absl::StrCat(describe(expected, i, e, a), ", allowed ", allowed);
  }
  return worst;
}

std::string compare_steps(const Field& expected, const Field& actual) {
  size_t different = 0;
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    const double distance = std::abs(actual.numbers[i] - expected.numbers[i]);
    if (!(distance <= 1.0)) return describe(expected, i, expected.numbers[i], actual.numbers[i]);
    if (distance > 0.0) ++different;
  }
  if (static_cast<double>(different) < expected.share_of_steps * static_cast<double>(expected.numbers.size()))
    return "";
  if (different == 0) return "";
  return absl::StrCat(expected.name, ": ", different, " of ", expected.numbers.size(), " differ by one step");
}

std::string compare_equal(const Field& expected, const Field& actual) {
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    if (expected.numbers[i] != actual.numbers[i]) {
      return describe(expected, i, expected.numbers[i], actual.numbers[i]);
    }
  }
  return "";
}

std::string compare_bits(const Field& expected, const Field& actual) {
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    if (std::bit_cast<uint64_t>(expected.numbers[i]) != std::bit_cast<uint64_t>(actual.numbers[i])) {
      return describe(expected, i, expected.numbers[i], actual.numbers[i]);
    }
  }
  return "";
}

std::string compare_field(const Field& expected, const Field& actual) {
  switch (expected.kind) {
    case FieldKind::kNumbers: return compare_numbers(expected, actual);
    case FieldKind::kSteps: return compare_steps(expected, actual);
    case FieldKind::kEqual: return compare_equal(expected, actual);
  }
  return "unknown kind of field";
}

template <typename Compare>
std::string compare_outcomes(const Outcome& expected, const Outcome& actual, Compare compare) {
  if (!actual.faults.empty()) return actual.faults.front();
  if (actual.code != expected.code || actual.argument != expected.argument) {
    return absl::StrCat("expected ", absl::StatusCodeToString(expected.code), " \"", expected.argument, "\", got ",
                        absl::StatusCodeToString(actual.code), " \"", actual.argument, "\"");
  }
  if (expected.code != absl::StatusCode::kOk) return "";
  if (actual.fields.size() != expected.fields.size()) return "another number of fields";
  for (size_t i = 0; i < expected.fields.size(); ++i) {
    const Field& field = expected.fields[i];
    if (actual.fields[i].name != field.name || actual.fields[i].numbers.size() != field.numbers.size()) {
      return absl::StrCat(field.name, ": another shape");
    }
    std::string wrong = compare(field, actual.fields[i]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

void Outcome::set_status(const Status& status) {
  code = status.code();
  argument = argument_of(status);
}

void Outcome::expect(bool held, const char* fault) {
  if (!held) faults.emplace_back(fault);
}

std::string difference(const Outcome& expected, const Outcome& actual) {
  return compare_outcomes(expected, actual, compare_field);
}

std::string bit_difference(const Outcome& expected, const Outcome& actual) {
  return compare_outcomes(expected, actual, compare_bits);
}

std::string not_finite(const Outcome& outcome) {
  if (outcome.code != absl::StatusCode::kOk) return "";
  for (const Field& field : outcome.fields) {
    for (size_t i = 0; i < field.numbers.size(); ++i) {
      const double number = field.numbers[i];
      if (!std::isfinite(number) && number != kMinusInfinity) return describe(field, i, 0.0, number);
    }
  }
  return "";
}

}  // namespace foldkv::test
