#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/profile/calibration_generated.h"
#include "runtime/profile/calibration_reader.h"
#include "runtime/profile/calibration_writer.h"
#include "runtime/profile/sealed_file.h"
#include "tests/runtime/profile/sample_calibration.h"

namespace foldkv {
namespace {

using FileChange = std::function<void(calibration_file::CalibrationT&)>;

std::vector<uint8_t> sample_file() { return write_calibration(test::sample_calibration()).value(); }

bool is_corrupt(const Status& status) { return status.code() == absl::StatusCode::kDataLoss; }

std::unique_ptr<calibration_file::CalibrationT> sample_tables() {
  return calibration_file::UnPackCalibration(sample_file().data());
}

std::vector<uint8_t> sealed(flatbuffers::FlatBufferBuilder& builder) {
  return sealed_file::seal(builder.GetBufferPointer(), builder.GetSize());
}

// The file with other contents under a checksum that fits.
Status read_with(const FileChange& change) {
  const std::unique_ptr<calibration_file::CalibrationT> tables = sample_tables();
  change(*tables);
  flatbuffers::FlatBufferBuilder builder;
  calibration_file::FinishCalibrationBuffer(builder, calibration_file::CreateCalibration(builder, tables.get()));
  const std::vector<uint8_t> bytes = sealed(builder);
  return read_calibration(bytes.data(), bytes.size()).status();
}

void check_corrupt(const std::string& part_of_message, const FileChange& change) {
  const Status status = read_with(change);
  CHECK(is_corrupt(status));
  CHECK_MESSAGE(std::string(status.message()).find(part_of_message) != std::string::npos, status.ToString());
}

TEST_CASE("calibration file: sums come back as they were written, bit for bit") {
  const CalibrationContent content = test::sample_calibration();
  const std::vector<uint8_t> bytes = sample_file();
  const StatusOr<CalibrationContent> read = read_calibration(bytes.data(), bytes.size());
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(*read == content);
  CHECK(std::bit_cast<uint64_t>(read->groups[0].values.sum[1]) == std::bit_cast<uint64_t>(-0.0));
  CHECK(write_calibration(*read).value() == bytes);
  CHECK(std::memcmp(bytes.data() + 4, "FKVC", 4) == 0);
}

TEST_CASE("calibration file: without gradients and a name") {
  CalibrationContent content = test::sample_calibration();
  content.model_name.clear();
  for (CalibrationGroup& group : content.groups) {
    group.key_gradients.clear();
    group.value_gradients.clear();
  }
  const std::vector<uint8_t> bytes = write_calibration(content).value();
  CHECK(read_calibration(bytes.data(), bytes.size()).value() == content);
}

TEST_CASE("calibration file: any address") {
  const std::vector<uint8_t> bytes = sample_file();
  for (size_t shift = 1; shift < 8; ++shift) {
    std::vector<uint8_t> moved(bytes.size() + shift);
    std::memcpy(moved.data() + shift, bytes.data(), bytes.size());
    CHECK(read_calibration(moved.data() + shift, bytes.size()).value() == test::sample_calibration());
  }
}

TEST_CASE("calibration file: cut off, longer or changed anywhere it is corrupt") {
  std::vector<uint8_t> bytes = sample_file();
  for (size_t size = 0; size < bytes.size(); ++size) CHECK(is_corrupt(read_calibration(bytes.data(), size).status()));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int change : {0x01, 0x10, 0x80, 0xff}) {
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ change);
      CHECK(is_corrupt(read_calibration(bytes.data(), bytes.size()).status()));
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ change);
    }
  }
  bytes.resize(bytes.size() + 8);
  CHECK(is_corrupt(read_calibration(bytes.data(), bytes.size()).status()));
  CHECK(argument_of(read_calibration(nullptr, 5).status()) == "bytes");
}

TEST_CASE("calibration file: a profile is none") {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(calibration_file::CreateCalibration(builder, sample_tables().get()), "FKVP");
  const std::vector<uint8_t> bytes = sealed(builder);
  const Status status = read_calibration(bytes.data(), bytes.size()).status();
  CHECK(is_corrupt(status));
  CHECK(std::string(status.message()).find("FKVC") != std::string::npos);
}

TEST_CASE("calibration file: versions") {
  CHECK(read_with([](auto&) {}).ok());
  CHECK(read_with([](auto& root) { root.version = 2; }).code() == absl::StatusCode::kOutOfRange);
  check_corrupt("version 0", [](auto& root) { root.version = 0; });
}

TEST_CASE("calibration file: contents that contradict themselves") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  check_corrupt("groups", [](auto& root) { root.groups.clear(); });
  check_corrupt("skip_tokens", [](auto& root) { root.skip_tokens = -1; });
  check_corrupt("samples", [](auto& root) { root.samples = -1; });
  check_corrupt("model_name", [](auto& root) { root.model->name.assign(200, 'x'); });
  check_corrupt("groups[0].keys.sum", [](auto& root) { root.groups[0]->keys->sum.clear(); });
  check_corrupt("groups[0].keys.products", [](auto& root) { root.groups[0]->keys->products.pop_back(); });
  check_corrupt("groups[0].values.pending", [](auto& root) { root.groups[0]->values->pending.pop_back(); });
  check_corrupt("groups[1].keys.count", [](auto& root) { root.groups[1]->keys->count = -1; });
  check_corrupt("groups[1].keys.count",
                [](auto& root) { root.groups[1]->keys->count = std::numeric_limits<int64_t>::max(); });
  check_corrupt("finite", [](auto& root) { root.groups[1]->values->sum[1] = kNan; });
  check_corrupt("finite", [](auto& root) { root.groups[1]->values->products[2] = kNan; });
  check_corrupt("finite", [](auto& root) {
    root.groups[0]->keys->pending[0] = std::numeric_limits<float>::infinity();
  });
  check_corrupt("zeros", [](auto& root) { root.groups[1]->keys->count = 0; });
  check_corrupt("groups[0].key_gradients", [](auto& root) { root.groups[0]->key_gradients.pop_back(); });
  check_corrupt("groups[1].key_gradients", [](auto& root) { root.groups[1]->key_gradients.clear(); });
  check_corrupt("groups[0].value_gradients[1]",
                [](auto& root) { root.groups[0]->value_gradients[1]->sum.pop_back(); });
}

// 4,000 groups that point to one matrix.
TEST_CASE("calibration file: groups that share their numbers to ask for more memory than the file has") {
  constexpr size_t kWidth = 512;
  flatbuffers::FlatBufferBuilder builder;
  const auto sum = builder.CreateVector(std::vector<double>(kWidth));
  const auto products = builder.CreateVector(std::vector<double>(kWidth * (kWidth + 1) / 2));
  const auto sums = calibration_file::CreateSums(builder, 0, sum, products);
  const auto layers = builder.CreateVector(std::vector<int32_t>{0});
  const auto group = calibration_file::CreateGroup(builder, layers, sums, sums);
  const auto groups = builder.CreateVector(std::vector<flatbuffers::Offset<calibration_file::Group>>(4000, group));
  const auto model = calibration_file::CreateModelIdentity(builder, 1);
  calibration_file::FinishCalibrationBuffer(builder,
                                            calibration_file::CreateCalibration(builder, 1, model, 0, 0, groups));
  const std::vector<uint8_t> bytes = sealed(builder);
  const Status status = read_calibration(bytes.data(), bytes.size()).status();
  CHECK(is_corrupt(status));
  CHECK_MESSAGE(std::string(status.message()).find("share") != std::string::npos, status.ToString());
}

// Numbers are free to lie; nothing may be read outside, and what is accepted is consistent.
TEST_CASE("calibration file: any byte may lie under a checksum that fits") {
  const std::vector<uint8_t> written = sample_file();
  std::vector<uint8_t> bytes(written.begin(), written.end() - 8);
  int64_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const uint8_t original = bytes[at];
    for (int value : {0x00, 0x01, 0x04, 0x7f, 0x80, 0xff, original ^ 0x01, original ^ 0x08, original ^ 0x80}) {
      bytes[at] = static_cast<uint8_t>(value);
      const std::vector<uint8_t> file = sealed_file::seal(bytes.data(), bytes.size());
      const StatusOr<CalibrationContent> read = read_calibration(file.data(), file.size());
      if (read.ok()) {
        CHECK(check_calibration_content(*read).ok());
      } else {
        ++refused;
      }
    }
    bytes[at] = original;
  }
  CHECK(refused > 0);
}

TEST_CASE("calibration file: contents that no calibrator makes are not written") {
  CalibrationContent content = test::sample_calibration();
  content.groups[0].keys.products.pop_back();
  CHECK(write_calibration(content).status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace foldkv
