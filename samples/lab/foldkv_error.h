#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "foldkv/foldkv.h"

namespace foldkv_lab {

// The library's error as a status of the lab. `action` says what was tried.
[[nodiscard]] absl::Status status_of(const foldkv_error& error, absl::string_view action);

}  // namespace foldkv_lab

// Takes the value out of a foldkv::Result, or returns its error as a status.
#define LAB_ASSIGN_OR_RETURN_FOLDKV(declaration, action, expression) \
  LAB_ASSIGN_OR_RETURN_FOLDKV_INNER(LAB_CONCAT(lab_result_, __LINE__), declaration, action, expression)
#define LAB_ASSIGN_OR_RETURN_FOLDKV_INNER(temporary, declaration, action, expression) \
  auto temporary = (expression);                                                      \
  if (!temporary.ok()) return ::foldkv_lab::status_of(temporary.error(), action);     \
  declaration = *std::move(temporary)

#define LAB_RETURN_IF_FOLDKV_ERROR(action, expression)                                  \
  do {                                                                                  \
    const auto lab_outcome = (expression);                                              \
    if (!lab_outcome.ok()) return ::foldkv_lab::status_of(lab_outcome.error(), action); \
  } while (false)
