#pragma once

#include <array>
#include <cstddef>

namespace foldkv::test {

// Every operation of a backend. A new one takes its place here, in RecordingBackend and in operation_table(), or the
// suite fails: RecordingBackend does not compile without it, and an operation without rows is reported.
enum class Operation {
  kMemory,
  kCopy,
  kRotation,
  kCheckAttention,
  kProduct,
  kAllFinite,
  kConvert,
  kPrepareHeads,
  kAppend,
  kMoveRows,
  kAttend,
  kScore,
  kMean,
  kEncode,
  kRebuild,
  kSketch,
  kCoefficients,
  kMoveLatents,
  kMoments,
};

inline constexpr std::array<const char*, 19> kOperationNames = {
    "memory",        "copy",   "rotation",  "check_attention", "product",      "all_finite",   "convert",
    "prepare_heads", "append", "move_rows", "attend",          "score",        "mean",         "encode",
    "rebuild",       "sketch", "coefficients", "move_latents", "moments"};

static_assert(kOperationNames.size() == static_cast<size_t>(Operation::kMoments) + 1);

[[nodiscard]] constexpr const char* name_of(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

}  // namespace foldkv::test
