// Files whose checksum fits but whose contents were made to do harm.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/base/fingerprint.h"
#include "runtime/profile/profile_generated.h"
#include "runtime/profile/profile_reader.h"
#include "runtime/profile/profile_writer.h"
#include "tests/runtime/profile/sample_profile.h"

namespace foldkv {
namespace {

using FileChange = std::function<void(file::ProfileT&)>;

// Pads and appends the checksum that fits.
std::vector<uint8_t> sealed(std::vector<uint8_t> bytes) {
  while (bytes.size() % 8 != 0) bytes.push_back(0);
  const uint64_t checksum = fingerprint_of_bytes(bytes.data(), bytes.size());
  for (int index = 0; index < 8; ++index) bytes.push_back(static_cast<uint8_t>(checksum >> (8 * index)));
  return bytes;
}

std::vector<uint8_t> finished(flatbuffers::FlatBufferBuilder& builder) {
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::unique_ptr<file::ProfileT> sample_tables() {
  const std::vector<uint8_t> bytes = write_profile(test::sample_profile()).value();
  return file::UnPackProfile(bytes.data());
}

Status read_with(const FileChange& change) {
  const std::unique_ptr<file::ProfileT> tables = sample_tables();
  change(*tables);
  flatbuffers::FlatBufferBuilder builder;
  file::FinishProfileBuffer(builder, file::CreateProfile(builder, tables.get()));
  const std::vector<uint8_t> bytes = sealed(finished(builder));
  return read_profile(bytes.data(), bytes.size()).status();
}

void check_corrupt(const std::string& part_of_message, const FileChange& change) {
  const Status status = read_with(change);
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_MESSAGE(std::string(status.message()).find(part_of_message) != std::string::npos, status.ToString());
}

TEST_CASE("a repacked file is read: the tests below change one thing only") {
  const Status status = read_with([](file::ProfileT&) {});
  CHECK_MESSAGE(status.ok(), status.ToString());
}

TEST_CASE("versions") {
  CHECK(read_with([](file::ProfileT& root) { root.version = 4; }).code() == absl::StatusCode::kOutOfRange);
  CHECK(read_with([](file::ProfileT& root) { root.version = 2147483647; }).code() == absl::StatusCode::kOutOfRange);
  check_corrupt("version 0", [](file::ProfileT& root) { root.version = 0; });
  check_corrupt("version -1", [](file::ProfileT& root) { root.version = -1; });
}

TEST_CASE("plans that do not fit the groups") {
  const auto add_plan = [](file::ProfileT& root, const char* name) {
    root.plans.push_back(std::make_unique<file::PlanT>(*root.plans[0]));
    root.plans[1]->name = name;
  };
  check_corrupt("fingerprint", [&](file::ProfileT& root) { add_plan(root, "other"); });
  check_corrupt("no other plan", [&](file::ProfileT& root) { add_plan(root, "default"); });
  check_corrupt("plans", [](file::ProfileT& root) { root.plans.clear(); });
  check_corrupt("name", [](file::ProfileT& root) { root.plans[0]->name.clear(); });
  check_corrupt("fingerprint", [](file::ProfileT& root) { root.plans[0]->name = "Default"; });
  check_corrupt("plans[0].groups", [](file::ProfileT& root) { root.plans[0]->groups.pop_back(); });
  for (auto file::BandsT::*numbers : {&file::BandsT::bits, &file::BandsT::codes, &file::BandsT::steps}) {
    check_corrupt("bits, codes or steps", [&](file::ProfileT& root) {
      ((*root.plans[0]->groups[0]->keys).*numbers).assign(2, 1);  // of three bands
    });
  }
  check_corrupt("code", [](file::ProfileT& root) { root.plans[0]->groups[0]->keys->codes.assign(3, 7); });
  check_corrupt("bits", [](file::ProfileT& root) { root.plans[0]->groups[0]->keys->steps.assign(3, 2); });
  check_corrupt("held_out_divergence", [](file::ProfileT& root) { root.plans[0]->held_out_divergence = -1.0; });
  check_corrupt("held_out_tokens", [](file::ProfileT& root) { root.plans[0]->held_out_tokens = -1; });
  check_corrupt("plans[0].groups[1]", [](file::ProfileT& root) {
    root.plans[0]->groups[1]->values->widths[0] = 3;
  });
}

TEST_CASE("contents that contradict themselves") {
  check_corrupt("latent_width",
                [](file::ProfileT& root) { root.groups[0]->keys->latent_width = std::numeric_limits<int64_t>::max(); });
  check_corrupt("key_width",
                [](file::ProfileT& root) { root.groups[0]->key_width = std::numeric_limits<int64_t>::max() / 2; });
  check_corrupt("key_width",
                [](file::ProfileT& root) { root.groups[0]->key_width = std::numeric_limits<int64_t>::min(); });
  check_corrupt("basis", [](file::ProfileT& root) { root.groups[0]->values->basis.pop_back(); });
  check_corrupt("finite",
                [](file::ProfileT& root) { root.groups[1]->keys->basis[0] = std::numeric_limits<float>::quiet_NaN(); });
  for (double bad : {-0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    check_corrupt("shrinkage", [&](file::ProfileT& root) { root.provenance->shrinkage = bad; });
  }
  check_corrupt("groups[0].keys.gains", [](file::ProfileT& root) { root.groups[0]->keys->gains.assign(3, 1.0); });
  check_corrupt("groups[0].keys.gains[2]", [](file::ProfileT& root) {
    root.groups[0]->keys->gains = {1.0, 1.0, -1.0, 1.0};
  });
  check_corrupt("layer_count", [](file::ProfileT& root) { root.model->layer_count = -5; });
  check_corrupt("layers", [](file::ProfileT& root) { root.groups[0]->layers.assign(3000, 0); });
  check_corrupt("groups", [](file::ProfileT& root) {
    root.groups.clear();
    root.plans[0]->groups.clear();
  });
  check_corrupt("fingerprint", [](file::ProfileT& root) { root.fingerprint ^= 1; });
  check_corrupt("fingerprint", [](file::ProfileT& root) { root.model->name = "sampled"; });
}

TEST_CASE("sensitivities that contradict themselves") {
  const auto add = [](file::ProfileT& root) -> file::SensitivityT& {
    Profile profile = test::sample_profile();
    profile.sensitivity = test::sample_sensitivity();
    const std::vector<uint8_t> bytes = write_profile(profile).value();
    root.sensitivity = std::move(file::UnPackProfile(bytes.data())->sensitivity);
    return *root.sensitivity;
  };
  CHECK(read_with([&](file::ProfileT& root) { add(root); }).ok());
  check_corrupt("examples of 4", [&](file::ProfileT& root) { add(root).values->examples.pop_back(); });
  check_corrupt("rows of 6", [&](file::ProfileT& root) { add(root).keys->rows.push_back(1); });
  check_corrupt("4 layers", [&](file::ProfileT& root) {
    file::LayerFiguresT& figures = *add(root).keys;
    figures.divergences.pop_back();
    figures.rows.pop_back();
    figures.examples.pop_back();
  });
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check_corrupt("values[0]", [&](file::ProfileT& root) { add(root).values->divergences[0] = nan; });
  check_corrupt("values[1]", [&](file::ProfileT& root) { add(root).values->divergences[1] = -1.0; });
  check_corrupt("values[2]", [&](file::ProfileT& root) { add(root).values->divergences[2] = 1.0; });
  check_corrupt("values[3]", [&](file::ProfileT& root) { add(root).values->rows[3] = 1; });
  check_corrupt("keys[4]", [&](file::ProfileT& root) { add(root).keys->examples[4] = -1; });
  check_corrupt("scale", [&](file::ProfileT& root) { add(root).scale = nan; });
  check_corrupt("text", [&](file::ProfileT& root) { add(root).text = std::string(64, 'x'); });
}

// What is not in the fingerprint may be changed by whoever makes the checksum fit, but never to what is not valid.
TEST_CASE("any byte of a file with sensitivities may lie") {
  Profile profile = test::sample_profile();
  profile.sensitivity = test::sample_sensitivity();
  const std::vector<uint8_t> written = write_profile(profile).value();
  std::vector<uint8_t> bytes(written.begin(), written.end() - 8);
  int64_t changed = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const uint8_t original = bytes[at];
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff, original ^ 0x01, original ^ 0x08}) {
      bytes[at] = static_cast<uint8_t>(value);
      const std::vector<uint8_t> file = sealed(bytes);
      const StatusOr<Profile> read = read_profile(file.data(), file.size());
      if (!read.ok()) continue;
      Profile again = *read;
      CHECK(finish_profile(again).ok());
      CHECK(read->fingerprint == profile.fingerprint);
      changed += test::equal(*read, profile) ? 0 : 1;
    }
    bytes[at] = original;
  }
  CHECK(changed > 0);
}

TEST_CASE("the wrong identifier") {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(file::CreateProfile(builder, sample_tables().get()), "FKVS");
  const std::vector<uint8_t> bytes = sealed(finished(builder));
  const Status status = read_profile(bytes.data(), bytes.size()).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(std::string(status.message()).find("FKVP") != std::string::npos);
}

// 4,000 groups that all point to one basis of 1 MiB would take 8 GB. They are refused before anything is taken.
TEST_CASE("groups that share their numbers to ask for more memory than the file has") {
  constexpr int64_t kWidth = 512;
  flatbuffers::FlatBufferBuilder builder;
  const auto basis = builder.CreateVector(std::vector<float>(kWidth * kWidth));
  const auto mean = builder.CreateVector(std::vector<float>(kWidth));
  const auto variances = builder.CreateVector(std::vector<double>(kWidth));
  const auto side = file::CreateSide(builder, kWidth, basis, mean, variances);
  const auto layers = builder.CreateVector(std::vector<int32_t>{0});
  const auto group = file::CreateGroup(builder, layers, kWidth, 128, false, 0, side, side);
  const auto groups = builder.CreateVector(std::vector<flatbuffers::Offset<file::Group>>(4000, group));
  const auto widths = builder.CreateVector(std::vector<int32_t>{kWidth});
  const auto bits = builder.CreateVector(std::vector<int32_t>{4});
  const auto bands = file::CreateBands(builder, widths, bits);
  const auto group_plan = file::CreateGroupPlan(builder, bands, bands);
  const auto group_plans = builder.CreateVector(std::vector<flatbuffers::Offset<file::GroupPlan>>(4000, group_plan));
  const auto name = builder.CreateString("default");
  const auto plan = file::CreatePlan(builder, name, group_plans);
  const auto plans = builder.CreateVector(std::vector<flatbuffers::Offset<file::Plan>>{plan});
  const auto model = file::CreateModelIdentity(builder, 1, 0, 4096);
  const auto provenance = file::CreateProvenance(builder);
  file::FinishProfileBuffer(builder, file::CreateProfile(builder, 1, model, provenance, true, groups, plans, 0));
  const std::vector<uint8_t> bytes = sealed(finished(builder));
  const Status status = read_profile(bytes.data(), bytes.size()).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_MESSAGE(std::string(status.message()).find("share") != std::string::npos, status.ToString());
}

// Every byte, changed in many ways under a checksum that fits: offsets, lengths and numbers of all kinds. Only changes
// that mean nothing (padding, offsets that lead to equal bytes) may be accepted, and then the content is unchanged.
TEST_CASE("any byte may lie") {
  const Profile profile = test::sample_profile();
  const std::vector<uint8_t> written = write_profile(profile).value();
  std::vector<uint8_t> bytes(written.begin(), written.end() - 8);
  int64_t accepted = 0;
  int64_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const uint8_t original = bytes[at];
    for (int value : {0x00, 0x01, 0x04, 0x7f, 0x80, 0xff, original ^ 0x01, original ^ 0x08, original ^ 0x80}) {
      bytes[at] = static_cast<uint8_t>(value);
      const std::vector<uint8_t> file = sealed(bytes);
      const StatusOr<Profile> read = read_profile(file.data(), file.size());
      if (!read.ok()) {
        ++refused;
      } else {
        ++accepted;
        CHECK(test::equal(*read, profile));
      }
    }
    bytes[at] = original;
  }
  CHECK(accepted > 0);  // the unchanged byte is among them
  CHECK(refused > accepted);
}

}  // namespace
}  // namespace foldkv
