#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace foldkv::test {

enum class FieldKind {
  kNumbers,  // within a tolerance
  kSteps,    // whole numbers: less than a share differ, none by more than one (architecture.md decision 7)
  kEqual,    // the same
};

// How far a number may be from the one expected: relative to itself, to the largest of its row, and at all.
struct Tolerance {
  double relative = 0.0;
  double of_row = 0.0;
  double absolute = 0.0;
};

struct Field {
  std::string name;
  FieldKind kind = FieldKind::kEqual;
  std::vector<double> numbers;
  int64_t row_width = 1;
  Tolerance tolerance;
  double share_of_steps = 0.0;
};

// What one run of one operation did.
struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string argument;  // that an error named
  std::vector<Field> fields;
  std::vector<std::string> faults;  // memory touched that was not the operation's, and the like

  // The status of the operation; fields of a failed operation mean nothing and are not looked at.
  void set_status(const Status& status);
  void expect(bool held, const char* fault);
};

// "" or what is wrong with `actual`.
[[nodiscard]] std::string difference(const Outcome& expected, const Outcome& actual);
// The same, to the last bit.
[[nodiscard]] std::string bit_difference(const Outcome& expected, const Outcome& actual);
// "" or the first number that is neither finite nor the log-sum-exp of nothing.
[[nodiscard]] std::string not_finite(const Outcome& outcome);

}  // namespace foldkv::test
