#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "foldkv/foldkv.hpp"
#include "samples/lab/model.h"
#include "samples/lab/thread_pool.h"

namespace foldkv_lab {

struct FoldkvHostOptions {
  std::string backend;          // empty: the library's default
  std::string instruction_set;  // empty: the best of this machine
  uint64_t budget_bytes = uint64_t{4} << 30;
  bool deterministic = false;
};

// What the lab needs of libfoldkv to run one model: a runtime that works on the lab's threads, and the model's
// description with its weights bound. Nothing is copied: `model` and `threads` must outlive this object.
class FoldkvHost {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<FoldkvHost>> create(const Model& model, const std::string& name,
                                                                          const FoldkvHostOptions& options,
                                                                          ThreadPool& threads);

  [[nodiscard]] foldkv::Runtime& runtime() { return runtime_; }
  [[nodiscard]] const foldkv::Model& foldkv_model() const { return foldkv_model_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] ThreadPool& threads() { return threads_; }

 private:
  FoldkvHost(const Model& model, ThreadPool& threads, foldkv::Runtime runtime, foldkv::Model foldkv_model)
      : model_(model), threads_(threads), runtime_(std::move(runtime)), foldkv_model_(std::move(foldkv_model)) {}

  const Model& model_;
  ThreadPool& threads_;
  foldkv::Runtime runtime_;
  foldkv::Model foldkv_model_;
};

}  // namespace foldkv_lab
