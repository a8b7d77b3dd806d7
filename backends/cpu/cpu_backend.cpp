#include "backends/cpu/cpu_backend.h"

#include <cstring>
#include <thread>

#include "backends/cpu/attend.h"
#include "backends/cpu/engine.h"
#include "backends/cpu/integer_tile.h"
#include "backends/cpu/latents.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/products.h"
#include "backends/cpu/rotation_table.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/score.h"

namespace foldkv::backend::cpu {
namespace {

// Each operation lives in a file of its own; this class gives them the interface.
class CpuBackend final : public Backend {
 public:
  CpuBackend(const Kernels& kernels, const DeviceOptions& options, int threads)
      : threads_(threads, {options.parallel_for, options.parallel_for_context}),
        engine_{kernels, threads_},
        deterministic_(options.deterministic) {}

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] std::string_view instruction_set() const override { return engine_.kernels.name; }
  [[nodiscard]] int thread_count() const override { return threads_.thread_count(); }

  [[nodiscard]] StatusOr<std::byte*> reserve_memory(int64_t bytes) override { return reserve_system_memory(bytes); }
  void release_memory(std::byte* memory, int64_t bytes) override { release_system_memory(memory, bytes); }
  void discard_memory(std::byte* memory, int64_t bytes) override { discard_system_memory(memory, bytes); }
  [[nodiscard]] int64_t memory_granularity() const override { return system_page_bytes(); }
  [[nodiscard]] Status copy_to_device(std::byte* device, const std::byte* host, int64_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  [[nodiscard]] Status copy_to_host(std::byte* host, const std::byte* device, int64_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  [[nodiscard]] bool host_memory() const override { return true; }

  [[nodiscard]] int64_t rotation_bytes(const Rotation& rotation) const override {
    return rotation_table_bytes(rotation.frequency_count);
  }
  [[nodiscard]] Status prepare_rotation(const Rotation& rotation, std::byte* memory) override {
    if (rotation.frequency_count > 0) write_rotation_table(rotation, memory);
    return absl::OkStatus();
  }

  [[nodiscard]] int64_t fast_basis_bytes(int64_t rows, int64_t width) const override {
    return engine_.kernels.has_integers ? rows * integer_row_bytes(width) : 0;
  }
  [[nodiscard]] Status prepare_fast_basis(const float* basis, int64_t rows, int64_t width, std::byte* memory) override {
    if (engine_.kernels.has_integers) make_integer_basis(engine_.kernels, basis, rows, width, memory);
    return absl::OkStatus();
  }

  [[nodiscard]] Status check_attention(const AttentionRules& rules, const LatentLayout* layout) const override {
    return cpu::check_attention(rules, layout);
  }

  [[nodiscard]] StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape) override {
    ProductShape chosen = shape;
    chosen.deterministic = shape.deterministic || deterministic_;
    return cpu::make_product(engine_, chosen);
  }
  [[nodiscard]] StatusOr<bool> all_finite(const TensorView& view) override { return cpu::all_finite(engine_, view); }
  [[nodiscard]] Status convert(const TensorView& input, const MutableTensorView& output) override {
    return cpu::convert(engine_, input, output);
  }
  [[nodiscard]] Status prepare_heads(const PrepareHeadsRequest& request) override {
    cpu::prepare_heads(engine_, request);
    return absl::OkStatus();
  }
  [[nodiscard]] Status append(const AppendRequest& request) override { return cpu::append(engine_, request); }
  [[nodiscard]] Status move_rows(const MoveRequest& request) override {
    cpu::move_rows(request);
    return absl::OkStatus();
  }

  [[nodiscard]] int64_t attend_workspace(const AttendShape& shape) const override {
    return cpu::attend_workspace(engine_, shape);
  }
  [[nodiscard]] Status attend(const AttendRequest& request) override {
    cpu::attend(engine_, request);
    return absl::OkStatus();
  }
  [[nodiscard]] int64_t score_workspace(const AttendShape& shape) const override {
    return cpu::score_workspace(engine_, shape);
  }
  [[nodiscard]] Status score(const ScoreRequest& request) override { return cpu::score(engine_, request); }

  [[nodiscard]] int64_t latent_workspace(const LatentShape& shape) const override {
    return cpu::latent_workspace(engine_, shape);
  }
  [[nodiscard]] Status mean(const MeanRequest& request) override { return cpu::mean(engine_, request); }
  [[nodiscard]] Status encode(const EncodeRequest& request) override { return cpu::encode(engine_, request); }
  [[nodiscard]] Status rebuild(const RebuildRequest& request) override {
    cpu::rebuild(engine_, request);
    return absl::OkStatus();
  }
  [[nodiscard]] Status sketch(const SketchRequest& request) override {
    cpu::sketch(engine_, request);
    return absl::OkStatus();
  }
  [[nodiscard]] Status coefficients(const CoefficientsRequest& request) override {
    return cpu::coefficients(engine_, request);
  }
  [[nodiscard]] Status move_latents(const MoveLatentsRequest& request) override { return cpu::move_latents(request); }
  [[nodiscard]] Status moments(const MomentsRequest& request) override {
    cpu::moments(engine_, request);
    return absl::OkStatus();
  }

 private:
  mutable ThreadPool threads_;
  Engine engine_;
  bool deterministic_;
};

StatusOr<std::unique_ptr<Backend>> open_cpu(const DeviceOptions& options) {
  if (options.device != 0) {
    return argument_error("device", absl::StrCat("is ", options.device, ", the cpu backend has device 0 only"));
  }
  if (options.threads < 0) {
    return argument_error("threads", absl::StrCat("is ", options.threads, ", expected 0 or more"));
  }
  const Kernels* kernels = find_kernels(options.instruction_set.c_str());
  if (kernels == nullptr) {
    return with_argument(
        unsupported_error(absl::StrCat("the cpu backend has no kernels for instruction set '", options.instruction_set,
                                       "' on this machine, only for ", available_kernels())),
        "instruction_set");
  }
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::make_unique<CpuBackend>(*kernels, options, threads);
}

int32_t device_count() { return 1; }
const char* best_instruction_set() { return find_kernels("best")->name; }

}  // namespace
}  // namespace foldkv::backend::cpu

namespace foldkv::backend {

const Plugin& cpu_plugin() {
  static const Plugin plugin = {.name = "cpu",
                                .description = "the host's processor",
                                .device_count = cpu::device_count,
                                .instruction_set = cpu::best_instruction_set,
                                .open = cpu::open_cpu};
  return plugin;
}

}  // namespace foldkv::backend
