#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

// What a calibrator has summed up, as its file holds it.
namespace foldkv {

// Of rows of one width.
struct MomentSums {
  int64_t count = 0;             // rows in sum and products
  std::vector<double> sum;       // [width]
  std::vector<double> products;  // [width (width + 1) / 2]: about the rows' mean, the lower triangle row by row
  std::vector<float> pending;    // [rows][width]: rows that are not in them yet

  [[nodiscard]] int64_t width() const { return static_cast<int64_t>(sum.size()); }
  bool operator==(const MomentSums&) const = default;
};

struct CalibrationGroup {
  std::vector<int32_t> layers;  // rising
  MomentSums keys;              // of stacked rows: one layer after the other
  MomentSums values;
  std::vector<MomentSums> key_gradients;  // of each layer; empty: none were observed
  std::vector<MomentSums> value_gradients;

  bool operator==(const CalibrationGroup&) const = default;
};

struct CalibrationContent {
  uint64_t model_fingerprint = 0;
  std::string model_name;
  int32_t skip_tokens = 0;
  int64_t samples = 0;
  std::vector<CalibrationGroup> groups;

  bool operator==(const CalibrationContent&) const = default;
};

// Argument error for the first thing that does not fit the rest or is not finite, "groups[2].keys.products" for example.
[[nodiscard]] Status check_calibration_content(const CalibrationContent& content);

}  // namespace foldkv
