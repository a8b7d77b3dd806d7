#include "backends/cpu/cpu_backend.h"

#include <string>
#include <thread>

#include "backends/cpu/kernels.h"
#include "doctest/doctest.h"

namespace foldkv::backend {
namespace {

TEST_CASE("the plugin says what it is and opens its only device") {
  const Plugin& plugin = cpu_plugin();
  CHECK(plugin.size == sizeof(Plugin));
  CHECK(plugin.version == Plugin::kPluginVersion);
  CHECK(std::string(plugin.name) == "cpu");
  CHECK(plugin.device_count() == 1);
  const auto backend = plugin.open({});
  REQUIRE(backend.ok());
  CHECK((*backend)->name() == "cpu");
  CHECK((*backend)->instruction_set() == plugin.instruction_set());
  CHECK((*backend)->thread_count() == static_cast<int>(std::thread::hardware_concurrency()));
  CHECK((*backend)->host_memory());
}

TEST_CASE("options that cannot be met are refused by name") {
  const auto refusal = [](const DeviceOptions& options) { return cpu_plugin().open(options).status(); };
  CHECK(argument_of(refusal({.device = 1})) == "device");
  CHECK(argument_of(refusal({.threads = -1})) == "threads");
  const Status unknown = refusal({.instruction_set = "sse9"});
  CHECK(unknown.code() == absl::StatusCode::kUnimplemented);
  CHECK(argument_of(unknown) == "instruction_set");
  CHECK(unknown.message().find("sse9") != absl::string_view::npos);
  CHECK(unknown.message().find("portable") != absl::string_view::npos);
}

TEST_CASE("the best instruction set is the first of those that are there") {
  const std::string available = cpu::available_kernels();
  CHECK(available.substr(0, available.find(',')) == cpu::find_kernels("")->name);
  CHECK(cpu::find_kernels("best") == cpu::find_kernels(""));
  CHECK(std::string(cpu::find_kernels("portable")->name) == "portable");
  CHECK(cpu::find_kernels("PORTABLE") == nullptr);
}

}  // namespace
}  // namespace foldkv::backend
