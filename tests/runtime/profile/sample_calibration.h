#pragma once

#include "runtime/profile/calibration_content.h"

namespace foldkv::test {

// Two groups of small numbers: of two layers with pending rows, and of one layer; gradients of all.
[[nodiscard]] inline CalibrationContent sample_calibration() {
  CalibrationContent content;
  content.model_fingerprint = 0x123456789abcdef0u;
  content.model_name = "sample";
  content.skip_tokens = 4;
  content.samples = 3;
  CalibrationGroup wide;
  wide.layers = {0, 1};
  wide.keys = {300, {1.5, -2.0, 0.25, 900.0}, {4, 1, 5, 0.5, -0.25, 6, 1e-9, 2, -3, 7}, {0.5f, -1.0f, 2.0f, 3.5f}};
  wide.values = {300, {0.0, -0.0, 1e300, 1.0}, {1, 0, 1, 0, 0, 1, 0, 0, 0, 1}, {1.0f, 2.0f, 3.0f, 4.0f}};
  wide.key_gradients = {{0, {0, 0}, {0, 0, 0}, {1.0f, 2.0f}}, {0, {0, 0}, {0, 0, 0}, {3.0f, 4.0f}}};
  wide.value_gradients = {{0, {0, 0}, {0, 0, 0}, {5.0f, 6.0f}}, {0, {0, 0}, {0, 0, 0}, {7.0f, 8.0f}}};
  CalibrationGroup narrow;
  narrow.layers = {3};
  narrow.keys = {301, {1, 2}, {3, 4, 9}, {}};
  narrow.values = {301, {5, 6}, {7, 0, 8}, {}};
  narrow.key_gradients = {{1, {1, 1}, {0, 0, 0}, {}}};
  narrow.value_gradients = {{1, {2, 1}, {0, 0, 0}, {}}};
  content.groups = {wide, narrow};
  return content;
}

}  // namespace foldkv::test
