#include "runtime/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace foldkv {
namespace {
constexpr char kArgumentPayload[] = "foldkv/argument";
constexpr char kNativeCodePayload[] = "foldkv/native_code";
}  // namespace

Status argument_error(absl::string_view argument, absl::string_view message) {
  return with_argument(absl::InvalidArgumentError(message), argument);
}

Status with_argument(Status status, absl::string_view argument) {
  if (!status.ok()) status.SetPayload(kArgumentPayload, absl::Cord(argument));
  return status;
}

std::string argument_of(const Status& status) {
  const auto payload = status.GetPayload(kArgumentPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

Status backend_error(int native_code, absl::string_view message) {
  Status status = absl::CancelledError(message);
  status.SetPayload(kNativeCodePayload, absl::Cord(absl::StrCat(native_code)));
  return status;
}

int native_code_of(const Status& status) {
  const auto payload = status.GetPayload(kNativeCodePayload);
  int code = 0;
  if (payload.has_value() && !absl::SimpleAtoi(std::string(*payload), &code)) code = 0;
  return code;
}

}  // namespace foldkv
