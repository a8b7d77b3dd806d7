#include "abi/guard.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/match.h"

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
    case absl::StatusCode::kNotFound: return FOLDKV_E_FILE;
    case absl::StatusCode::kDeadlineExceeded: return FOLDKV_E_CANCELLED;
    default: return FOLDKV_E_INTERNAL;
  }
}

void copy_text(char* target, size_t capacity, absl::string_view text) {
  const size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(target, text.data(), length);
  std::memset(target + length, 0, capacity - length);
}

// Messages of the core begin with the field that is wrong, "bits: got 9 ..."; the argument, "options.bits", says it
// already.
absl::string_view without_field(absl::string_view message, absl::string_view argument) {
  for (absl::string_view field = argument; !field.empty();) {
    if (absl::StartsWith(message, absl::StrCat(field, ": "))) return message.substr(field.size() + 2);
    const size_t dot = field.find('.');
    field = dot == absl::string_view::npos ? absl::string_view() : field.substr(dot + 1);
  }
  return message;
}

// An error struct of another size is left alone: nothing can be said through it.
bool takes_errors(const foldkv_error* error) { return error != nullptr && error->struct_size >= sizeof(foldkv_error); }

void fill(foldkv_status code, int32_t native_code, absl::string_view argument, absl::string_view message,
          foldkv_error* error) {
  error->status = code;
  error->native_code = native_code;
  copy_text(error->argument, sizeof(error->argument), argument);
  copy_text(error->message, sizeof(error->message), message);
}

}  // namespace

foldkv_status report(const Status& status, foldkv_error* error) {
  const foldkv_status code = code_of(status.code());
  if (!takes_errors(error)) return code;
  const std::string argument = argument_of(status);
  const std::string message = argument.empty()
                                  ? std::string(status.message())
                                  : absl::StrCat(argument, ": ", without_field(status.message(), argument));
  fill(code, native_code_of(status), argument, message, error);
  return code;
}

foldkv_status report_thrown(foldkv_status code, const char* message, foldkv_error* error) noexcept {
  if (takes_errors(error)) fill(code, 0, "", message, error);
  return code;
}

}  // namespace foldkv::abi
