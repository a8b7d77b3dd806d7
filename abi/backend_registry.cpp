#include "abi/backend_registry.h"

#include <array>

#include "absl/strings/str_join.h"
#include "backends/reference/reference_backend.h"
#ifdef FOLDKV_CPU
#include "backends/cpu/cpu_backend.h"
#endif

namespace foldkv::abi {
namespace {

constexpr int32_t kBackendCount =
#ifdef FOLDKV_CPU
    2;
#else
    1;
#endif

const std::array<const backend::Plugin*, kBackendCount>& backends() {
  static const std::array<const backend::Plugin*, kBackendCount> all = {
#ifdef FOLDKV_CPU
      &backend::cpu_plugin(),
#endif
      &backend::reference_plugin(),
  };
  return all;
}

}  // namespace

int32_t backend_count() { return kBackendCount; }

const backend::Plugin& backend_at(int32_t index) { return *backends()[static_cast<size_t>(index)]; }

StatusOr<const backend::Plugin*> find_backend(const std::string& name) {
  for (const backend::Plugin* plugin : backends()) {
    if (name == plugin->name) return plugin;
  }
  const auto append_name = [](std::string* out, const backend::Plugin* plugin) { out->append(plugin->name); };
  return with_argument(unsupported_error(absl::StrCat("is \"", name, "\", this build has ",
                                                      absl::StrJoin(backends(), ", ", append_name))),
                       "options.backend");
}

}  // namespace foldkv::abi
