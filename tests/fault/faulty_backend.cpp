#include "tests/fault/faulty_backend.h"

#include <utility>

#include "tests/fault/fault_points.h"

namespace foldkv::test {
namespace {

using namespace backend;

constexpr int kNativeCode = 77;

class Faults {
 public:
  explicit Faults(int32_t* cancel) : cancel_(cancel) {}

  template <typename Call>
  [[nodiscard]] auto pass_on(const Call& call) const -> decltype(call()) {
    if (fault_strikes(Fault::kCancel)) *cancel_ = 1;
    if (fault_strikes(Fault::kBackendBefore)) return backend_error(kNativeCode, "a fault of the test");
    auto result = call();
    if (fault_strikes(Fault::kBackendAfter)) return backend_error(kNativeCode, "a fault of the test");
    return result;
  }

 private:
  int32_t* cancel_;
};

class FaultyProduct final : public Product {
 public:
  FaultyProduct(std::unique_ptr<Product> inner, const Faults& faults) : inner_(std::move(inner)), faults_(faults) {}
  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  Status run(const ProductRequest& request) override {
    return faults_.pass_on([&] { return inner_->run(request); });
  }

 private:
  std::unique_ptr<Product> inner_;
  Faults faults_;
};

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> inner, int32_t* cancel) : inner_(std::move(inner)), faults_(cancel) {}

  std::string_view name() const override { return inner_->name(); }
  std::string_view instruction_set() const override { return inner_->instruction_set(); }
  int thread_count() const override { return inner_->thread_count(); }

  StatusOr<std::byte*> reserve_memory(int64_t bytes) override {
    if (fault_strikes(Fault::kBackendBefore)) return backend_error(kNativeCode, "a fault of the test");
    return inner_->reserve_memory(bytes);
  }
  void release_memory(std::byte* memory, int64_t bytes) override { inner_->release_memory(memory, bytes); }
  void discard_memory(std::byte* memory, int64_t bytes) override { inner_->discard_memory(memory, bytes); }
  int64_t memory_granularity() const override { return inner_->memory_granularity(); }
  Status copy_to_device(std::byte* device, const std::byte* host, int64_t bytes) override {
    return faults_.pass_on([&] { return inner_->copy_to_device(device, host, bytes); });
  }
  Status copy_to_host(std::byte* host, const std::byte* device, int64_t bytes) override {
    return faults_.pass_on([&] { return inner_->copy_to_host(host, device, bytes); });
  }
  bool host_memory() const override { return inner_->host_memory(); }

  int64_t rotation_bytes(const Rotation& rotation) const override { return inner_->rotation_bytes(rotation); }
  Status prepare_rotation(const Rotation& rotation, std::byte* memory) override {
    return faults_.pass_on([&] { return inner_->prepare_rotation(rotation, memory); });
  }
  int64_t fast_basis_bytes(int64_t rows, int64_t width) const override {
    return inner_->fast_basis_bytes(rows, width);
  }
  Status prepare_fast_basis(const float* basis, int64_t rows, int64_t width, std::byte* memory) override {
    return faults_.pass_on([&] { return inner_->prepare_fast_basis(basis, rows, width, memory); });
  }
  Status check_attention(const AttentionRules& rules, const LatentLayout* layout) const override {
    return inner_->check_attention(rules, layout);
  }

  StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape) override {
    return faults_.pass_on([&]() -> StatusOr<std::unique_ptr<Product>> {
      FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<Product> made, inner_->make_product(shape));
      return std::make_unique<FaultyProduct>(std::move(made), faults_);
    });
  }
  StatusOr<bool> all_finite(const TensorView& view) override {
    return faults_.pass_on([&] { return inner_->all_finite(view); });
  }
  Status convert(const TensorView& input, const MutableTensorView& output) override {
    return faults_.pass_on([&] { return inner_->convert(input, output); });
  }
  Status prepare_heads(const PrepareHeadsRequest& request) override {
    return faults_.pass_on([&] { return inner_->prepare_heads(request); });
  }
  Status append(const AppendRequest& request) override {
    return faults_.pass_on([&] { return inner_->append(request); });
  }
  Status move_rows(const MoveRequest& request) override {
    return faults_.pass_on([&] { return inner_->move_rows(request); });
  }
  int64_t attend_workspace(const AttendShape& shape) const override { return inner_->attend_workspace(shape); }
  Status attend(const AttendRequest& request) override {
    return faults_.pass_on([&] { return inner_->attend(request); });
  }
  int64_t score_workspace(const AttendShape& shape) const override { return inner_->score_workspace(shape); }
  Status score(const ScoreRequest& request) override {
    return faults_.pass_on([&] { return inner_->score(request); });
  }
  int64_t latent_workspace(const LatentShape& shape) const override { return inner_->latent_workspace(shape); }
  Status mean(const MeanRequest& request) override {
    return faults_.pass_on([&] { return inner_->mean(request); });
  }
  Status encode(const EncodeRequest& request) override {
    return faults_.pass_on([&] { return inner_->encode(request); });
  }
  Status rebuild(const RebuildRequest& request) override {
    return faults_.pass_on([&] { return inner_->rebuild(request); });
  }
  Status sketch(const SketchRequest& request) override {
    return faults_.pass_on([&] { return inner_->sketch(request); });
  }
  Status coefficients(const CoefficientsRequest& request) override {
    return faults_.pass_on([&] { return inner_->coefficients(request); });
  }
  Status move_latents(const MoveLatentsRequest& request) override {
    return faults_.pass_on([&] { return inner_->move_latents(request); });
  }
  Status moments(const MomentsRequest& request) override {
    return faults_.pass_on([&] { return inner_->moments(request); });
  }

 private:
  std::unique_ptr<Backend> inner_;
  Faults faults_;
};

}  // namespace

std::unique_ptr<Backend> make_faulty(std::unique_ptr<Backend> inner, int32_t* cancel) {
  return std::make_unique<FaultyBackend>(std::move(inner), cancel);
}

}  // namespace foldkv::test
