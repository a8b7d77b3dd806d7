#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/interface/backend.h"
#include "backends/reference/reference_backend.h"

namespace foldkv::test {

// Computes moments with the reference backend, with as many threads to offer as it is told, until it is told to fail.
// Everything else is not for calibration and is refused.
class ToyBackend : public backend::Backend {
 public:
  explicit ToyBackend(int threads = 1)
      : threads_(threads), reference_(backend::reference_plugin().open(backend::DeviceOptions{}).value()) {}

  // moments fails from the call after `calls` more on.
  void fail_after(int calls) { calls_left_ = calls; }

  [[nodiscard]] Status moments(const backend::MomentsRequest& request) override {
    if (calls_left_ == 0) return backend_error(17, "the device is gone");
    if (calls_left_ > 0) --calls_left_;
    return reference_->moments(request);
  }
  [[nodiscard]] int thread_count() const override { return threads_; }

  [[nodiscard]] std::string_view name() const override { return "toy"; }
  [[nodiscard]] std::string_view instruction_set() const override { return "none"; }
  [[nodiscard]] StatusOr<std::byte*> reserve_memory(int64_t) override { return refused(); }
  void release_memory(std::byte*, int64_t) override {}
  void discard_memory(std::byte*, int64_t) override {}
  [[nodiscard]] int64_t memory_granularity() const override { return 1; }
  [[nodiscard]] Status copy_to_device(std::byte*, const std::byte*, int64_t) override { return refused(); }
  [[nodiscard]] Status copy_to_host(std::byte*, const std::byte*, int64_t) override { return refused(); }
  [[nodiscard]] bool host_memory() const override { return true; }
  [[nodiscard]] int64_t rotation_bytes(const backend::Rotation&) const override { return 0; }
  [[nodiscard]] Status prepare_rotation(const backend::Rotation&, std::byte*) override { return refused(); }
  [[nodiscard]] int64_t fast_basis_bytes(int64_t, int64_t) const override { return 0; }
  [[nodiscard]] Status prepare_fast_basis(const float*, int64_t, int64_t, std::byte*) override { return refused(); }
  [[nodiscard]] Status check_attention(const backend::AttentionRules&, const backend::LatentLayout*) const override {
    return refused();
  }
  [[nodiscard]] StatusOr<std::unique_ptr<backend::Product>> make_product(const backend::ProductShape&) override {
    return refused();
  }
  [[nodiscard]] StatusOr<bool> all_finite(const TensorView&) override { return refused(); }
  [[nodiscard]] Status convert(const TensorView&, const MutableTensorView&) override { return refused(); }
  [[nodiscard]] Status prepare_heads(const backend::PrepareHeadsRequest&) override { return refused(); }
  [[nodiscard]] Status append(const backend::AppendRequest&) override { return refused(); }
  [[nodiscard]] Status move_rows(const backend::MoveRequest&) override { return refused(); }
  [[nodiscard]] int64_t attend_workspace(const backend::AttendShape&) const override { return 0; }
  [[nodiscard]] Status attend(const backend::AttendRequest&) override { return refused(); }
  [[nodiscard]] int64_t score_workspace(const backend::AttendShape&) const override { return 0; }
  [[nodiscard]] Status score(const backend::ScoreRequest&) override { return refused(); }
  [[nodiscard]] int64_t latent_workspace(const backend::LatentShape&) const override { return 0; }
  [[nodiscard]] Status mean(const backend::MeanRequest&) override { return refused(); }
  [[nodiscard]] Status encode(const backend::EncodeRequest&) override { return refused(); }
  [[nodiscard]] Status rebuild(const backend::RebuildRequest&) override { return refused(); }
  [[nodiscard]] Status sketch(const backend::SketchRequest&) override { return refused(); }
  [[nodiscard]] Status coefficients(const backend::CoefficientsRequest&) override { return refused(); }
  [[nodiscard]] Status move_latents(const backend::MoveLatentsRequest&) override { return refused(); }

 private:
  static Status refused() { return unsupported_error("the toy backend computes moments only"); }

  int threads_;
  int calls_left_ = -1;  // -1: never fails
  std::unique_ptr<backend::Backend> reference_;
};

}  // namespace foldkv::test
