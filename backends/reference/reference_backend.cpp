#include "backends/reference/reference_backend.h"

#include <cstring>

#include "backends/reference/all_finite.h"
#include "backends/reference/append.h"
#include "backends/reference/attend.h"
#include "backends/reference/check_attention.h"
#include "backends/reference/coefficients.h"
#include "backends/reference/convert.h"
#include "backends/reference/encode.h"
#include "backends/reference/latent_arrays.h"
#include "backends/reference/mean.h"
#include "backends/reference/memory.h"
#include "backends/reference/moments.h"
#include "backends/reference/move_latents.h"
#include "backends/reference/move_rows.h"
#include "backends/reference/prepare_heads.h"
#include "backends/reference/product.h"
#include "backends/reference/rebuild.h"
#include "backends/reference/score.h"
#include "backends/reference/sketch.h"

namespace foldkv::backend {
namespace {

constexpr const char* kInstructionSet = "scalar";

// Without state: every operation is a function of its request.
class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string_view instruction_set() const override { return kInstructionSet; }
  int thread_count() const override { return 1; }

  StatusOr<std::byte*> reserve_memory(int64_t bytes) override { return reference::reserve_memory(bytes); }
  void release_memory(std::byte* memory, int64_t bytes) override { reference::release_memory(memory, bytes); }
  void discard_memory(std::byte* memory, int64_t bytes) override { reference::discard_memory(memory, bytes); }
  int64_t memory_granularity() const override { return reference::memory_granularity(); }
  Status copy_to_device(std::byte* device, const std::byte* host, int64_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  Status copy_to_host(std::byte* host, const std::byte* device, int64_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  bool host_memory() const override { return true; }

  // Rotations are computed from their frequencies each time.
  int64_t rotation_bytes(const Rotation& /*rotation*/) const override { return 0; }
  Status prepare_rotation(const Rotation& /*rotation*/, std::byte* /*memory*/) override { return absl::OkStatus(); }

  int64_t fast_basis_bytes(int64_t, int64_t) const override { return 0; }
  Status prepare_fast_basis(const float*, int64_t, int64_t, std::byte*) override { return absl::OkStatus(); }

  Status check_attention(const AttentionRules& rules, const LatentLayout* layout) const override {
    return reference::check_attention(rules, layout);
  }

  StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape) override {
    return reference::make_product(shape);
  }
  StatusOr<bool> all_finite(const TensorView& view) override { return reference::all_finite(view); }
  Status convert(const TensorView& input, const MutableTensorView& output) override {
    return reference::convert(input, output);
  }
  Status prepare_heads(const PrepareHeadsRequest& request) override { return reference::prepare_heads(request); }
  Status append(const AppendRequest& request) override { return reference::append(request); }
  Status move_rows(const MoveRequest& request) override {
    reference::move_rows(request);
    return absl::OkStatus();
  }

  int64_t attend_workspace(const AttendShape& shape) const override { return reference::attend_workspace(shape); }
  Status attend(const AttendRequest& request) override { return reference::attend(request); }
  int64_t score_workspace(const AttendShape& shape) const override { return reference::score_workspace(shape); }
  Status score(const ScoreRequest& request) override { return reference::score(request); }

  int64_t latent_workspace(const LatentShape& shape) const override { return reference::latent_workspace(shape); }
  Status mean(const MeanRequest& request) override { return reference::mean(request); }
  Status encode(const EncodeRequest& request) override { return reference::encode(request); }
  Status rebuild(const RebuildRequest& request) override { return reference::rebuild(request); }
  Status sketch(const SketchRequest& request) override { return reference::sketch(request); }
  Status coefficients(const CoefficientsRequest& request) override { return reference::coefficients(request); }
  Status move_latents(const MoveLatentsRequest& request) override { return reference::move_latents(request); }
  Status moments(const MomentsRequest& request) override { return reference::moments(request); }
};

int32_t device_count() { return 1; }
const char* best_instruction_set() { return kInstructionSet; }

StatusOr<std::unique_ptr<Backend>> open_device(const DeviceOptions& options) {
  if (options.device != 0) {
    return argument_error("device", absl::StrCat("is ", options.device, ", the reference backend has device 0 only"));
  }
  if (!options.instruction_set.empty() && options.instruction_set != kInstructionSet) {
    return argument_error("instruction_set", absl::StrCat("is \"", options.instruction_set,
                                                          "\", the reference backend has \"", kInstructionSet, "\""));
  }
  return std::make_unique<ReferenceBackend>();
}

}  // namespace

const Plugin& reference_plugin() {
  static const Plugin plugin{
      sizeof(Plugin), Plugin::kPluginVersion,
      "reference",    "plain scalar code in double precision, one thread; the oracle of the other backends",
      &device_count,  &best_instruction_set,
      &open_device};
  return plugin;
}

}  // namespace foldkv::backend
