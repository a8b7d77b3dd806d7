#include <string>

#include "abi/backend_registry.h"
#include "abi/guard.h"
#include "abi/read_struct.h"

#define FOLDKV_TEXT_OF(value) #value
#define FOLDKV_TEXT(value) FOLDKV_TEXT_OF(value)
#define FOLDKV_VERSION_TEXT \
  FOLDKV_TEXT(FOLDKV_VERSION_MAJOR) "." FOLDKV_TEXT(FOLDKV_VERSION_MINOR) "." FOLDKV_TEXT(FOLDKV_VERSION_PATCH)

using foldkv::Status;

extern "C" {

const char* foldkv_version(void) { return FOLDKV_VERSION_TEXT; }

int32_t foldkv_abi_version(void) { return FOLDKV_ABI_VERSION; }

const char* foldkv_build_info(void) {
  return "foldkv " FOLDKV_VERSION_TEXT
         ", "
#if defined(__clang__)
         "clang " __clang_version__
#else
         "gcc " __VERSION__
#endif
#if defined(FOLDKV_CPU)
         ", cpu backend"
#if defined(FOLDKV_WITH_ONEDNN)
         " with oneDNN"
#else
         " without oneDNN"
#endif
#endif
#if !defined(NDEBUG)
         ", debug"
#endif
      ;
}

const char* foldkv_status_name(foldkv_status status) {
  switch (status) {
    case FOLDKV_OK: return "FOLDKV_OK";
    case FOLDKV_E_ARGUMENT: return "FOLDKV_E_ARGUMENT";
    case FOLDKV_E_VERSION: return "FOLDKV_E_VERSION";
    case FOLDKV_E_BUDGET: return "FOLDKV_E_BUDGET";
    case FOLDKV_E_MEMORY: return "FOLDKV_E_MEMORY";
    case FOLDKV_E_UNSUPPORTED: return "FOLDKV_E_UNSUPPORTED";
    case FOLDKV_E_STATE: return "FOLDKV_E_STATE";
    case FOLDKV_E_MISMATCH: return "FOLDKV_E_MISMATCH";
    case FOLDKV_E_CORRUPT: return "FOLDKV_E_CORRUPT";
    case FOLDKV_E_NUMERIC: return "FOLDKV_E_NUMERIC";
    case FOLDKV_E_BACKEND: return "FOLDKV_E_BACKEND";
    case FOLDKV_E_INTERNAL: return "FOLDKV_E_INTERNAL";
    case FOLDKV_E_FILE: return "FOLDKV_E_FILE";
    case FOLDKV_E_CANCELLED: return "FOLDKV_E_CANCELLED";
    default: return "FOLDKV_E_UNKNOWN";
  }
}

int32_t foldkv_backend_count(void) { return foldkv::abi::backend_count(); }

foldkv_status foldkv_backend_get(int32_t index, foldkv_backend_info* info, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> Status {
    if (index < 0 || index >= foldkv::abi::backend_count()) {
      return foldkv::argument_error("index",
                                    absl::StrCat("is ", index, ", expected 0 to ", foldkv::abi::backend_count() - 1));
    }
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    const foldkv::backend::Plugin& plugin = foldkv::abi::backend_at(index);
    foldkv_backend_info result{};
    result.device_count = plugin.device_count();
    foldkv::abi::write_text(result.name, plugin.name);
    foldkv::abi::write_text(result.instruction_set, plugin.instruction_set());
    foldkv::abi::write_text(result.description, plugin.description);
    foldkv::abi::write_struct(result, info);
    return absl::OkStatus();
  });
}

}  // extern "C"
