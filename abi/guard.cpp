#include "abi/guard.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace foldkv::abi {
namespace {

foldkv_status code_of(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return FOLDKV_OK;
    case absl::StatusCode::kInvalidArgument: return FOLDKV_E_ARGUMENT;
    case absl::StatusCode::kOutOfRange: return FOLDKV_E_VERSION;
    case absl::StatusCode::kResourceExhausted: return FOLDKV_E_BUDGET;
    case absl::StatusCode::kUnavailable: return FOLDKV_E_MEMORY;
    case absl::StatusCode::kUnimplemented: return FOLDKV_E_UNSUPPORTED;
    case absl::StatusCode::kFailedPrecondition: return FOLDKV_E_STATE;
    case absl::StatusCode::kAborted: return FOLDKV_E_MISMATCH;
    case absl::StatusCode::kDataLoss: return FOLDKV_E_CORRUPT;
    case absl::StatusCode::kUnknown: return FOLDKV_E_NUMERIC;
    case absl::StatusCode::kCancelled: return FOLDKV_E_BACKEND;
    default: return FOLDKV_E_INTERNAL;
  }
}

void copy_text(char* target, size_t capacity, absl::string_view text) {
  const size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(target, text.data(), length);
  std::memset(target + length, 0, capacity - length);
}

}  // namespace

foldkv_status report(const Status& status, foldkv_error* error) {
  const foldkv_status code = code_of(status.code());
  // An error struct of another size is left alone: nothing can be said through it.
  if (error == nullptr || error->struct_size < sizeof(foldkv_error)) return code;
  error->status = code;
  error->native_code = native_code_of(status);
  const std::string argument = argument_of(status);
  copy_text(error->argument, sizeof(error->argument), argument);
  const std::string message = argument.empty() ? std::string(status.message())
                                               : absl::StrCat(argument, ": ", status.message());
  copy_text(error->message, sizeof(error->message), message);
  return code;
}

}  // namespace foldkv::abi
