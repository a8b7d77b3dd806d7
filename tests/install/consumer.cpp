// A host in C++ with the wrapper, built without exceptions and RTTI.
#include <foldkv/foldkv.hpp>

#include <cstdio>

int main() {
  auto options = foldkv::init<foldkv_runtime_options>();
  options.budget_bytes = 8u << 20;
  options.threads = 1;
  const auto runtime = foldkv::Runtime::create(options);
  if (!runtime) {
    std::fprintf(stderr, "%s\n", runtime.error().message);
    return 1;
  }
  const auto stats = runtime->stats();
  if (!stats || stats->budget_bytes != 8u << 20 || stats->used_bytes != 0) return 1;
  std::printf("foldkv %s works\n", foldkv_version());
  return 0;
}
