#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Errors inside the library are absl::Status values. The functions below fix which code means what, so that
// the C boundary can translate without knowing the caller; each message says what was got and what was expected.
namespace foldkv {

using absl::Status;
using absl::StatusOr;

// An argument named `argument` is wrong (FOLDKV_E_ARGUMENT).
[[nodiscard]] Status argument_error(absl::string_view argument, absl::string_view message);
// Like argument_error, for other codes that concern one argument.
[[nodiscard]] Status with_argument(Status status, absl::string_view argument);
// The name given to argument_error or with_argument, "" when there is none.
[[nodiscard]] std::string argument_of(const Status& status);

[[nodiscard]] inline Status version_error(absl::string_view message) { return absl::OutOfRangeError(message); }
[[nodiscard]] inline Status budget_error(absl::string_view message) { return absl::ResourceExhaustedError(message); }
[[nodiscard]] inline Status memory_error(absl::string_view message) { return absl::UnavailableError(message); }
[[nodiscard]] inline Status unsupported_error(absl::string_view message) { return absl::UnimplementedError(message); }
[[nodiscard]] inline Status state_error(absl::string_view message) { return absl::FailedPreconditionError(message); }
[[nodiscard]] inline Status mismatch_error(absl::string_view message) { return absl::AbortedError(message); }
[[nodiscard]] inline Status corrupt_error(absl::string_view message) { return absl::DataLossError(message); }
[[nodiscard]] inline Status numeric_error(absl::string_view message) { return absl::UnknownError(message); }
[[nodiscard]] inline Status cancelled_error() { return absl::DeadlineExceededError("the host has cancelled the call"); }
// A file or a stream of the host failed.
[[nodiscard]] Status file_error(int native_code, absl::string_view message);
[[nodiscard]] Status backend_error(int native_code, absl::string_view message);
// A budget that does not hold a block of so many bytes.
[[nodiscard]] Status budget_error(int64_t needed_bytes, absl::string_view message);
// 0 when the error does not say.
[[nodiscard]] int64_t needed_bytes_of(const Status& status);
[[nodiscard]] int native_code_of(const Status& status);
[[nodiscard]] inline Status internal_error(absl::string_view message) { return absl::InternalError(message); }

}  // namespace foldkv

#define FOLDKV_CONCAT_INNER(a, b) a##b
#define FOLDKV_CONCAT(a, b) FOLDKV_CONCAT_INNER(a, b)

#define FOLDKV_RETURN_IF_ERROR(expression)                       \
  do {                                                           \
    ::absl::Status foldkv_return_status = (expression);          \
    if (!foldkv_return_status.ok()) return foldkv_return_status; \
  } while (false)

#define FOLDKV_ASSIGN_OR_RETURN(declaration, expression) \
  FOLDKV_ASSIGN_OR_RETURN_INNER(FOLDKV_CONCAT(foldkv_status_or_, __LINE__), declaration, expression)
#define FOLDKV_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                          \
  if (!temporary.ok()) return std::move(temporary).status();              \
  declaration = std::move(temporary).value()
