#include "samples/lab/foldkv_error.h"

#include "absl/strings/str_cat.h"

namespace foldkv_lab {
namespace {

absl::StatusCode code_of(foldkv_status status) {
  switch (status) {
    case FOLDKV_OK: return absl::StatusCode::kOk;
    case FOLDKV_E_ARGUMENT: return absl::StatusCode::kInvalidArgument;
    case FOLDKV_E_BUDGET:
    case FOLDKV_E_MEMORY: return absl::StatusCode::kResourceExhausted;
    case FOLDKV_E_VERSION:
    case FOLDKV_E_UNSUPPORTED: return absl::StatusCode::kUnimplemented;
    case FOLDKV_E_STATE:
    case FOLDKV_E_MISMATCH: return absl::StatusCode::kFailedPrecondition;
    case FOLDKV_E_CORRUPT: return absl::StatusCode::kDataLoss;
    case FOLDKV_E_NUMERIC: return absl::StatusCode::kOutOfRange;
    default: return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status status_of(const foldkv_error& error, absl::string_view action) {
  // The message begins with the argument, when there is one.
  return absl::Status(code_of(error.status),
                      absl::StrCat(action, ": ", foldkv_status_name(error.status), " ", error.message));
}

}  // namespace foldkv_lab
