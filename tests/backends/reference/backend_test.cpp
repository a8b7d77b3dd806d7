#include "backends/reference/reference_backend.h"

#include <algorithm>
#include <string>

#include "doctest/doctest.h"
#include "runtime/base/status.h"
#include "tests/support/backends.h"

namespace foldkv::backend {
namespace {

TEST_CASE("the plugin says what it is and opens its one device") {
  const Plugin& plugin = reference_plugin();
  CHECK(plugin.size == sizeof(Plugin));
  CHECK(plugin.version == Plugin::kPluginVersion);
  CHECK(std::string(plugin.name) == "reference");
  CHECK(plugin.device_count() == 1);
  const auto backend = test::open_backend(test::reference_choice(), 8);
  CHECK(backend->name() == "reference");
  CHECK(backend->instruction_set() == plugin.instruction_set());
  CHECK(backend->thread_count() == 1);
}

TEST_CASE("another device and another instruction set are refused by name") {
  DeviceOptions options;
  options.device = 1;
  CHECK(argument_of(reference_plugin().open(options).status()) == "device");
  options.device = 0;
  options.instruction_set = "avx2";
  CHECK(argument_of(reference_plugin().open(options).status()) == "instruction_set");
  options.instruction_set = reference_plugin().instruction_set();
  CHECK(reference_plugin().open(options).ok());
}

TEST_CASE("what the reference cannot do is refused with the number that is wrong") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  const AttentionRules good{4, 2, 8, 1.0, 0.0, 0, {}};
  CHECK(backend->check_attention(good, nullptr).ok());
  AttentionRules bad = good;
  bad.head_size = 100000;
  const Status too_large = backend->check_attention(bad, nullptr);
  CHECK(too_large.code() == absl::StatusCode::kUnimplemented);
  CHECK(std::string(too_large.message()).find("100000") != std::string::npos);
  bad = good;
  bad.query_heads = 5;
  CHECK(backend->check_attention(bad, nullptr).code() == absl::StatusCode::kUnimplemented);
  bad = good;
  bad.rotation.frequency_count = 5;
  CHECK(backend->check_attention(bad, nullptr).code() == absl::StatusCode::kUnimplemented);
  LatentLayout layout;
  layout.values.scale_groups = {{0, 8, 4, 0}, {8, 8, 1, 4}};
  const Status too_few_bits = backend->check_attention(good, &layout);
  CHECK(too_few_bits.code() == absl::StatusCode::kUnimplemented);
  CHECK(std::string(too_few_bits.message()).find("value latents of 1 bits") != std::string::npos);
  layout.values.scale_groups[1].bits = 2;
  CHECK(backend->check_attention(good, &layout).ok());
}

TEST_CASE("a product without a size is refused") {
  const auto backend = test::open_backend(test::reference_choice(), 1);
  CHECK(argument_of(backend->make_product({0, 4, 4, NumberFormat::kF32, false}).status()) == "shape");
}

}  // namespace
}  // namespace foldkv::backend
