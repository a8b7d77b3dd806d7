#pragma once

#include <memory>

#include "foldkv/foldkv.h"
#include "runtime/cache/runtime.h"
#include "runtime/cache/sequence.h"
#include "runtime/cache/step.h"
#include "runtime/calibration/calibrator.h"
#include "runtime/calibration/sensitivity.h"

// What the opaque handles hold: one reference each, so that handles may be released in any order.
struct foldkv_runtime {
  std::shared_ptr<foldkv::Runtime> object;
};
struct foldkv_model {
  std::shared_ptr<foldkv::Model> object;
};
struct foldkv_profile {
  std::shared_ptr<const foldkv::Profile> object;
};
struct foldkv_calibrator {
  std::shared_ptr<foldkv::Calibrator> object;
};
struct foldkv_sensitivity {
  std::shared_ptr<foldkv::Sensitivity> object;
};
struct foldkv_sequence {
  std::shared_ptr<foldkv::Sequence> object;
};
struct foldkv_step {
  std::unique_ptr<foldkv::Step> object;
};
