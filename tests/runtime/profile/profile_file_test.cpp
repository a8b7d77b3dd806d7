#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/profile/profile_generated.h"
#include "runtime/profile/profile_reader.h"
#include "runtime/profile/profile_writer.h"
#include "tests/runtime/profile/sample_profile.h"
#include "tests/support/data.h"

namespace foldkv {
namespace {

std::vector<uint8_t> sample_file() { return write_profile(test::sample_profile()).value(); }

bool is_corrupt(const Status& status) { return status.code() == absl::StatusCode::kDataLoss; }

TEST_CASE("a profile comes back as it was written") {
  const Profile profile = test::sample_profile();
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  const StatusOr<Profile> read = read_profile(bytes.data(), bytes.size());
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(test::equal(*read, profile));
  CHECK(write_profile(*read).value() == bytes);
}

TEST_CASE("unnamed and uncentred profiles come back too") {
  Profile profile = test::sample_profile();
  profile.model_name.clear();
  profile.made_by.clear();
  profile.centred = false;
  for (ProfileGroup& group : profile.groups) {
    group.correction = {};
    group.keys.mean.assign(group.keys.mean.size(), 0.0f);
    group.values.mean.assign(group.values.mean.size(), 0.0f);
  }
  REQUIRE(finish_profile(profile).ok());
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  CHECK(test::equal(read_profile(bytes.data(), bytes.size()).value(), profile));
}

int32_t version_of(const std::vector<uint8_t>& bytes) { return file::GetProfile(bytes.data())->version(); }

TEST_CASE("several plans come back, in a file of version 2; one that covers its bases needs but version 1") {
  Profile profile = test::sample_profile();
  CHECK(version_of(write_profile(profile).value()) == 1);
  profile.plans.push_back(profile.plans[0]);
  profile.plans[1].name = "small";
  profile.plans[1].groups[0].keys = {{1, 4}};
  REQUIRE(finish_profile(profile).ok());
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  CHECK(version_of(bytes) == 2);
  CHECK(test::equal(read_profile(bytes.data(), bytes.size()).value(), profile));
  profile.plans.erase(profile.plans.begin());
  REQUIRE(finish_profile(profile).ok());
  CHECK(version_of(write_profile(profile).value()) == 2);
  profile.plans[0].name = "default";
  REQUIRE(finish_profile(profile).ok());
  CHECK(version_of(write_profile(profile).value()) == 2);
}

TEST_CASE("sensitivities come back; they change neither the fingerprint nor the version") {
  Profile profile = test::sample_profile();
  const uint64_t fingerprint = profile.fingerprint;
  profile.sensitivity = test::sample_sensitivity();
  REQUIRE(finish_profile(profile).ok());
  CHECK(profile.fingerprint == fingerprint);
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  CHECK(version_of(bytes) == 1);
  const StatusOr<Profile> read = read_profile(bytes.data(), bytes.size());
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(test::equal(*read, profile));
  CHECK(read->sensitivity->values[3].divergence == 2.5);
  CHECK(write_profile(*read).value() == bytes);
}

TEST_CASE("shrinkage comes back, and a file that does not name it has none") {
  Profile profile = test::sample_profile();
  const size_t plain_bytes = write_profile(profile).value().size();
  profile.shrinkage = 0.375;
  REQUIRE(finish_profile(profile).ok());
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  CHECK(bytes.size() > plain_bytes);
  CHECK(version_of(bytes) == 1);
  CHECK(read_profile(bytes.data(), bytes.size()).value().shrinkage == 0.375);
  CHECK(profile.fingerprint == test::sample_profile().fingerprint);
}

TEST_CASE("gains come back, and change no fingerprint") {
  Profile profile = test::sample_profile();
  profile.groups[0].keys.gains = {0.5, 2.0, 0.0, 7.0};
  REQUIRE(finish_profile(profile).ok());
  const std::vector<uint8_t> bytes = write_profile(profile).value();
  const Profile read = read_profile(bytes.data(), bytes.size()).value();
  CHECK(read.groups[0].keys.gains == profile.groups[0].keys.gains);
  CHECK(read.groups[0].values.gains.empty());
  CHECK(read.fingerprint == test::sample_profile().fingerprint);
}

TEST_CASE("what was measured of a plan comes back, and changes no fingerprint") {
  Profile profile = test::sample_profile();
  profile.plans.push_back(profile.plans[0]);
  profile.plans[1].name = "small";
  REQUIRE(finish_profile(profile).ok());
  const Profile recorded = record_divergence(profile, "small", 0.0625, 256).value();
  CHECK(recorded.fingerprint == profile.fingerprint);
  CHECK(recorded.plans[0] == profile.plans[0]);
  const std::vector<uint8_t> bytes = write_profile(recorded).value();
  const Profile read = read_profile(bytes.data(), bytes.size()).value();
  CHECK(test::equal(read, recorded));
  CHECK(read.plans[1].held_out_divergence == 0.0625);
  CHECK(read.plans[1].held_out_tokens == 256);
  CHECK(record_divergence(profile, "", 0.5, 1).value().plans[0].held_out_tokens == 1);
}

TEST_CASE("what cannot have been measured is not recorded") {
  const Profile profile = test::sample_profile();
  CHECK(argument_of(record_divergence(profile, "none", 0.5, 1).status()) == "plan");
  for (double bad : {-1e-9, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK(argument_of(record_divergence(profile, "", bad, 1).status()) == "divergence");
  }
  CHECK(argument_of(record_divergence(profile, "", 0.5, 0).status()) == "tokens");
}

TEST_CASE("the file names its kind and is whole words") {
  const std::vector<uint8_t> bytes = sample_file();
  CHECK(std::memcmp(bytes.data() + 4, "FKVP", 4) == 0);
  CHECK(bytes.size() % 8 == 0);
}

TEST_CASE("the bytes may lie at any address") {
  const std::vector<uint8_t> bytes = sample_file();
  for (size_t shift = 0; shift < 8; ++shift) {
    CAPTURE(shift);
    std::vector<uint8_t> moved(bytes.size() + shift);
    std::memcpy(moved.data() + shift, bytes.data(), bytes.size());
    const StatusOr<Profile> read = read_profile(moved.data() + shift, bytes.size());
    REQUIRE(read.ok());
    CHECK(test::equal(*read, test::sample_profile()));
  }
}

TEST_CASE("a file cut off anywhere is corrupt") {
  const std::vector<uint8_t> bytes = sample_file();
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(is_corrupt(read_profile(size == 0 ? bytes.data() : cut.data(), size).status()));
  }
}

TEST_CASE("a file with bytes behind it is corrupt") {
  std::vector<uint8_t> bytes = sample_file();
  for (int extra = 1; extra <= 16; ++extra) {
    bytes.push_back(0);
    CHECK(is_corrupt(read_profile(bytes.data(), bytes.size()).status()));
  }
}

TEST_CASE("any changed bit of any byte is seen, padding and checksum included") {
  std::vector<uint8_t> bytes = sample_file();
  int64_t accepted = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const uint8_t original = bytes[at];
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x55, 0xaa}) {
      bytes[at] = static_cast<uint8_t>(original ^ change);
      if (!is_corrupt(read_profile(bytes.data(), bytes.size()).status())) ++accepted;
    }
    bytes[at] = original;
  }
  CHECK(accepted == 0);
  CHECK(read_profile(bytes.data(), bytes.size()).ok());
}

TEST_CASE("what is no profile at all is said to be none") {
  const std::vector<uint8_t> zeros(64);
  const Status status = read_profile(zeros.data(), zeros.size()).status();
  CHECK(is_corrupt(status));
  CHECK(std::string(status.message()).find("not a profile") != std::string::npos);
  CHECK(argument_of(read_profile(nullptr, 64).status()) == "bytes");
}

TEST_CASE("a profile that was changed after it was finished is not written") {
  Profile profile = test::sample_profile();
  profile.calibration_samples = 99;
  CHECK(write_profile(profile).status().code() == absl::StatusCode::kInternal);
}

// Files of released versions must be readable for good. Each is what that version's writer made of sample_profile().
TEST_CASE("the file of version 0.1 is read, and written the same") {
  const std::vector<std::byte> bytes = test::read_bytes(test::data_path("profile_0_1.fkvp"));
  const StatusOr<Profile> read = read_profile(bytes.data(), bytes.size());
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(test::equal(*read, test::sample_profile()));
  CHECK(read->model_name == "sample");
  CHECK(read->groups[0].layers == std::vector<int32_t>{0, 1});
  CHECK(read->groups[0].keys.mean == std::vector<float>{1.0f, -2.0f, 0.5f, 900.0f});
  CHECK(read->groups[1].keys.basis == std::vector<float>{0.6f, 0.8f});
  const std::vector<uint8_t> written = sample_file();
  REQUIRE(written.size() == bytes.size());
  CHECK(std::memcmp(written.data(), bytes.data(), bytes.size()) == 0);
}

}  // namespace
}  // namespace foldkv
