#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backends/interface/operations.h"
#include "runtime/base/status.h"

namespace foldkv::backend {

// A product of one shape, made at step begin so that running it allocates nothing.
class Product {
 public:
  virtual ~Product() = default;
  [[nodiscard]] virtual int64_t workspace_bytes() const = 0;
  [[nodiscard]] virtual Status run(const ProductRequest& request) = 0;
};

// One device. Memory that a backend works on comes from reserve_memory, through the runtime's arena.
//
// Threads: all functions may be called by several threads at once, on different data. A backend that is busy with
// one call runs another on the caller's thread.
// Errors: a failed operation may have written to its output but to nothing else.
// Operations allocate nothing; they use the workspace they are given, whose size the *_workspace functions tell.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view instruction_set() const = 0;
  [[nodiscard]] virtual int thread_count() const = 0;

  // --- memory. Reserved memory is zero and takes physical memory only once touched.
  [[nodiscard]] virtual StatusOr<std::byte*> reserve_memory(int64_t bytes) = 0;
  virtual void release_memory(std::byte* memory, int64_t bytes) = 0;
  // Gives physical memory back; the contents are lost. Both are multiples of memory_granularity().
  virtual void discard_memory(std::byte* memory, int64_t bytes) = 0;
  [[nodiscard]] virtual int64_t memory_granularity() const = 0;
  [[nodiscard]] virtual Status copy_to_device(std::byte* device, const std::byte* host, int64_t bytes) = 0;
  [[nodiscard]] virtual Status copy_to_host(std::byte* host, const std::byte* device, int64_t bytes) = 0;
  // True when device pointers are ordinary host pointers.
  [[nodiscard]] virtual bool host_memory() const = 0;

  // --- data prepared once and shared by sequences
  [[nodiscard]] virtual int64_t rotation_bytes(const Rotation& rotation) const = 0;
  [[nodiscard]] virtual Status prepare_rotation(const Rotation& rotation, std::byte* memory) = 0;

  // A basis [rows][width] (f32, on the device) as fast arithmetic takes it. 0: the device has no use for it.
  [[nodiscard]] virtual int64_t fast_basis_bytes(int64_t rows, int64_t width) const = 0;
  [[nodiscard]] virtual Status prepare_fast_basis(const float* basis, int64_t rows, int64_t width,
                                                  std::byte* memory) = 0;

  // --- support: unsupported error that names the reason, asked when a sequence is created
  [[nodiscard]] virtual Status check_attention(const AttentionRules& rules, const LatentLayout* layout) const = 0;

  // --- operations
  [[nodiscard]] virtual StatusOr<std::unique_ptr<Product>> make_product(const ProductShape& shape) = 0;
  // Whether all numbers are finite.
  [[nodiscard]] virtual StatusOr<bool> all_finite(const TensorView& view) = 0;
  // Dense rows in another format; numbers beyond the target format are a numeric error.
  [[nodiscard]] virtual Status convert(const TensorView& input, const MutableTensorView& output) = 0;
  [[nodiscard]] virtual Status prepare_heads(const PrepareHeadsRequest& request) = 0;
  [[nodiscard]] virtual Status append(const AppendRequest& request) = 0;
  [[nodiscard]] virtual Status move_rows(const MoveRequest& request) = 0;

  [[nodiscard]] virtual int64_t attend_workspace(const AttendShape& shape) const = 0;
  [[nodiscard]] virtual Status attend(const AttendRequest& request) = 0;
  // The shape of one view and its rows. Errors name "sequence" (latents of some heads) or "thresholds" (none where
  // below is wanted).
  [[nodiscard]] virtual int64_t score_workspace(const AttendShape& shape) const = 0;
  [[nodiscard]] virtual Status score(const ScoreRequest& request) = 0;

  // Enough for any latent operation of that shape, which depends on tokens only up to a bound.
  [[nodiscard]] virtual int64_t latent_workspace(const LatentShape& shape) const = 0;
  [[nodiscard]] virtual Status mean(const MeanRequest& request) = 0;
  [[nodiscard]] virtual Status encode(const EncodeRequest& request) = 0;
  [[nodiscard]] virtual Status rebuild(const RebuildRequest& request) = 0;
  [[nodiscard]] virtual Status sketch(const SketchRequest& request) = 0;
  [[nodiscard]] virtual Status coefficients(const CoefficientsRequest& request) = 0;
  [[nodiscard]] virtual Status move_latents(const MoveLatentsRequest& request) = 0;
  [[nodiscard]] virtual Status moments(const MomentsRequest& request) = 0;
};

}  // namespace foldkv::backend
