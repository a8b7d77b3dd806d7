#include "runtime/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace foldkv {
namespace {
constexpr char kArgumentPayload[] = "foldkv/argument";
constexpr char kNativeCodePayload[] = "foldkv/native_code";
constexpr char kNeededBytesPayload[] = "foldkv/needed_bytes";

Status with_number(Status status, absl::string_view payload, int64_t number) {
  status.SetPayload(payload, absl::Cord(absl::StrCat(number)));
  return status;
}

int64_t number_of(const Status& status, absl::string_view payload) {
  const auto text = status.GetPayload(payload);
  int64_t number = 0;
  if (text.has_value() && !absl::SimpleAtoi(std::string(*text), &number)) number = 0;
  return number;
}

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
  return with_number(absl::CancelledError(message), kNativeCodePayload, native_code);
}

Status file_error(int native_code, absl::string_view message) {
  return with_number(absl::NotFoundError(message), kNativeCodePayload, native_code);
}

int native_code_of(const Status& status) { return static_cast<int>(number_of(status, kNativeCodePayload)); }

Status budget_error(int64_t needed_bytes, absl::string_view message) {
  return with_number(budget_error(message), kNeededBytesPayload, needed_bytes);
}

int64_t needed_bytes_of(const Status& status) { return number_of(status, kNeededBytesPayload); }

}  // namespace foldkv
