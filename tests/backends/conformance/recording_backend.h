#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "backends/interface/backend.h"
#include "tests/backends/conformance/allocations.h"
#include "tests/backends/conformance/operation.h"

namespace foldkv::test {

// A backend that counts which operations were asked of it and what they allocated. For use by one thread at a time.
class RecordingBackend final : public backend::Backend {
 public:
  explicit RecordingBackend(std::unique_ptr<backend::Backend> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] int64_t calls(Operation operation) const { return calls_[static_cast<size_t>(operation)]; }
  // Memory that calls of operations that succeeded took beside their workspace.
  [[nodiscard]] int64_t allocations(Operation operation) const { return allocations_[static_cast<size_t>(operation)]; }

  std::string_view name() const override { return inner_->name(); }
  std::string_view instruction_set() const override { return inner_->instruction_set(); }
  int thread_count() const override { return inner_->thread_count(); }
  bool host_memory() const override { return inner_->host_memory(); }
  int64_t memory_granularity() const override { return inner_->memory_granularity(); }

  StatusOr<std::byte*> reserve_memory(int64_t bytes) override {
    return count(Operation::kMemory).reserve_memory(bytes);
  }
  void release_memory(std::byte* memory, int64_t bytes) override {
    count(Operation::kMemory).release_memory(memory, bytes);
  }
  void discard_memory(std::byte* memory, int64_t bytes) override {
    count(Operation::kMemory).discard_memory(memory, bytes);
  }
  Status copy_to_device(std::byte* device, const std::byte* host, int64_t bytes) override {
    return count(Operation::kCopy).copy_to_device(device, host, bytes);
  }
  Status copy_to_host(std::byte* host, const std::byte* device, int64_t bytes) override {
    return count(Operation::kCopy).copy_to_host(host, device, bytes);
  }
  int64_t rotation_bytes(const backend::Rotation& rotation) const override { return inner_->rotation_bytes(rotation); }
  Status prepare_rotation(const backend::Rotation& rotation, std::byte* memory) override {
    return count(Operation::kRotation).prepare_rotation(rotation, memory);
  }
  int64_t fast_basis_bytes(int64_t rows, int64_t width) const override {
    return inner_->fast_basis_bytes(rows, width);
  }
  Status prepare_fast_basis(const float* basis, int64_t rows, int64_t width, std::byte* memory) override {
    return inner_->prepare_fast_basis(basis, rows, width, memory);
  }
  Status check_attention(const backend::AttentionRules& rules, const backend::LatentLayout* layout) const override {
    return count(Operation::kCheckAttention).check_attention(rules, layout);
  }
  StatusOr<std::unique_ptr<backend::Product>> make_product(const backend::ProductShape& shape) override {
    return count(Operation::kProduct).make_product(shape);
  }
  StatusOr<bool> all_finite(const TensorView& view) override {
    return measure(Operation::kAllFinite, [&](backend::Backend& inner) { return inner.all_finite(view); });
  }
  Status convert(const TensorView& input, const MutableTensorView& output) override {
    return measure(Operation::kConvert, [&](backend::Backend& inner) { return inner.convert(input, output); });
  }
  Status prepare_heads(const backend::PrepareHeadsRequest& request) override {
    return measure(Operation::kPrepareHeads, [&](backend::Backend& inner) { return inner.prepare_heads(request); });
  }
  Status append(const backend::AppendRequest& request) override {
    return measure(Operation::kAppend, [&](backend::Backend& inner) { return inner.append(request); });
  }
  Status move_rows(const backend::MoveRequest& request) override {
    return measure(Operation::kMoveRows, [&](backend::Backend& inner) { return inner.move_rows(request); });
  }
  int64_t attend_workspace(const backend::AttendShape& shape) const override { return inner_->attend_workspace(shape); }
  Status attend(const backend::AttendRequest& request) override {
    return measure(Operation::kAttend, [&](backend::Backend& inner) { return inner.attend(request); });
  }
  int64_t score_workspace(const backend::AttendShape& shape) const override { return inner_->score_workspace(shape); }
  Status score(const backend::ScoreRequest& request) override {
    return measure(Operation::kScore, [&](backend::Backend& inner) { return inner.score(request); });
  }
  int64_t latent_workspace(const backend::LatentShape& shape) const override { return inner_->latent_workspace(shape); }
  Status mean(const backend::MeanRequest& request) override {
    return measure(Operation::kMean, [&](backend::Backend& inner) { return inner.mean(request); });
  }
  Status encode(const backend::EncodeRequest& request) override {
    return measure(Operation::kEncode, [&](backend::Backend& inner) { return inner.encode(request); });
  }
  Status rebuild(const backend::RebuildRequest& request) override {
    return measure(Operation::kRebuild, [&](backend::Backend& inner) { return inner.rebuild(request); });
  }
  Status sketch(const backend::SketchRequest& request) override {
    return measure(Operation::kSketch, [&](backend::Backend& inner) { return inner.sketch(request); });
  }
  Status coefficients(const backend::CoefficientsRequest& request) override {
    return measure(Operation::kCoefficients, [&](backend::Backend& inner) { return inner.coefficients(request); });
  }
  Status move_latents(const backend::MoveLatentsRequest& request) override {
    return measure(Operation::kMoveLatents, [&](backend::Backend& inner) { return inner.move_latents(request); });
  }
  Status moments(const backend::MomentsRequest& request) override {
    return measure(Operation::kMoments, [&](backend::Backend& inner) { return inner.moments(request); });
  }

 private:
  backend::Backend& count(Operation operation) const {
    ++calls_[static_cast<size_t>(operation)];
    return *inner_;
  }

  template <typename Call>
  std::invoke_result_t<Call, backend::Backend&> measure(Operation operation, Call call) {
    const int64_t before = allocation_count();
    auto result = call(count(operation));
    if (result.ok()) allocations_[static_cast<size_t>(operation)] += allocation_count() - before;
    return result;
  }

  std::unique_ptr<backend::Backend> inner_;
  std::array<int64_t, kOperationNames.size()> allocations_{};
  mutable std::array<int64_t, kOperationNames.size()> calls_{};
};

}  // namespace foldkv::test
