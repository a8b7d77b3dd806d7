#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Early return of absl::Status and absl::StatusOr. The lab uses only the public header of FoldKV, hence own macros.
#define LAB_CONCAT_INNER(a, b) a##b
#define LAB_CONCAT(a, b) LAB_CONCAT_INNER(a, b)

#define LAB_RETURN_IF_ERROR(expression)                    \
  do {                                                     \
    ::absl::Status lab_return_status = (expression);       \
    if (!lab_return_status.ok()) return lab_return_status; \
  } while (false)

#define LAB_ASSIGN_OR_RETURN(declaration, expression) \
  LAB_ASSIGN_OR_RETURN_INNER(LAB_CONCAT(lab_status_or_, __LINE__), declaration, expression)
#define LAB_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                       \
  if (!temporary.ok()) return std::move(temporary).status();           \
  declaration = std::move(temporary).value()
