#pragma once

#include <exception>
#include <new>

#include "foldkv/foldkv.h"
#include "runtime/base/status.h"

// The wall between the library and C: no exception crosses it, and every status becomes a code and a message.
namespace foldkv::abi {

// Fills error (null: nothing) and returns the code of status.
foldkv_status report(const Status& status, foldkv_error* error);
// The same for what was thrown; takes no memory, of which there may be none.
foldkv_status report_thrown(foldkv_status code, const char* message, foldkv_error* error) noexcept;

// Runs body, a function that returns Status.
template <typename Body>
foldkv_status guard(foldkv_error* error, const Body& body) {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc&) {
    return report_thrown(FOLDKV_E_MEMORY, "the host is out of memory", error);
  } catch (const std::exception& exception) {
    return report_thrown(FOLDKV_E_INTERNAL, exception.what(), error);
  } catch (...) {
    return report_thrown(FOLDKV_E_INTERNAL, "an unknown exception", error);
  }
}

[[nodiscard]] inline Status require(const void* pointer, absl::string_view argument) {
  return pointer == nullptr ? argument_error(argument, "is NULL") : absl::OkStatus();
}

}  // namespace foldkv::abi
