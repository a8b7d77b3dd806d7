#include "samples/lab/calibration_checks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "samples/lab/held_out.h"
#include "samples/lab/plan_ratios.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

constexpr int64_t kLayersPerGroup = 4;  // the library's default
constexpr int64_t kScaleGroup = 128;    // likewise
constexpr int64_t kExactTokens = 4 + 64;  // sinks and recent tokens of a sequence by default
constexpr int64_t kShortestRun = 16;      // what a sequence encodes first

int64_t layers_per_group(const CalibrationOptions& options) {
  return options.calibrator.layers_per_group > 0 ? options.calibrator.layers_per_group : kLayersPerGroup;
}

int64_t divide_up(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

// A scale group of so many coordinates at half a bit, with its scale of one byte.
int64_t least_side_bytes(int64_t coordinates) { return divide_up(divide_up(coordinates, 2), 8) + 1; }

// What foldkv_profile_plan can give at most: every side of every group keeps a scale group at half a bit.
double largest_ratio(const ModelShape& shape, const CalibrationOptions& options) {
  const int64_t scale_group = options.solve.scale_group > 0 ? options.solve.scale_group : kScaleGroup;
  int64_t bytes = 0;
  for (int64_t first = 0; first < shape.layer_count; first += layers_per_group(options)) {
    const int64_t layers = std::min(layers_per_group(options), shape.layer_count - first);
    bytes += 2 * least_side_bytes(std::min(scale_group, layers * shape.kv_width()));
    bytes += 2 * int64_t{options.solve.correction_rank};
  }
  return static_cast<double>(shape.full_token_bytes()) / static_cast<double>(bytes);
}

}  // namespace

absl::Status check_plans(const ModelShape& shape, const CalibrationOptions& options) {
  std::set<std::string> names;
  for (const std::string& name : plan_names(options.ratios)) {
    if (!names.insert(name).second) return absl::InvalidArgumentError(absl::StrCat("--plan: two plans are ", name));
  }
  if (options.ratios.empty()) return absl::OkStatus();
  const double largest = largest_ratio(shape, options);
  for (const double ratio : options.ratios) {
    if (ratio >= 1.0 && ratio <= largest) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--plan: got ", ratio, ", expected 1 to ", std::floor(largest), " for this model and groups"));
  }
  return absl::OkStatus();
}

absl::Status check_held_out(int64_t held_out, int64_t observed, int64_t tokens_per_sample) {
  if (held_out == 0) return absl::OkStatus();
  if (observed < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--held-out ", held_out, " leaves no sample to calibrate on"));
  }
  if (held_out_prefix(tokens_per_sample) >= kExactTokens + kShortestRun) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--held-out: of samples of ", tokens_per_sample,
                                                 " tokens nothing is compressed, so that there is nothing to measure"));
}

absl::Status check_rows(int64_t rows) {
  if (rows >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the texts give ", rows, " rows to calibrate on, expected 2 or more"));
}

std::string note_on_rows(const ModelShape& shape, const CalibrationOptions& options, int64_t rows) {
  const int64_t coordinates = std::min(layers_per_group(options), shape.layer_count) * shape.kv_width();
  if (rows >= coordinates) return "";
  return absl::StrCat("note: ", rows, " rows are fewer than the ", coordinates,
                      " coordinates of a group; more text makes a better profile\n");
}

}  // namespace foldkv_lab
