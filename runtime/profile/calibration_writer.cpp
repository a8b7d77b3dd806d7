#include "runtime/profile/calibration_writer.h"

#include <cstddef>

#include "runtime/profile/calibration_file.h"
#include "runtime/profile/calibration_generated.h"
#include "runtime/profile/sealed_file.h"

namespace foldkv {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using SumsVector = Offset<flatbuffers::Vector<Offset<calibration_file::Sums>>>;

constexpr size_t kTableRoom = 256;

size_t estimated_bytes(const MomentSums& sums) {
  return kTableRoom + (sums.sum.size() + sums.products.size()) * sizeof(double) + sums.pending.size() * sizeof(float);
}

// Bytes of all vectors of numbers, and room for the tables around them; the builder cannot report an overflow.
size_t estimated_bytes(const CalibrationContent& content) {
  size_t bytes = kTableRoom + content.model_name.size();
  for (const CalibrationGroup& group : content.groups) {
    bytes += kTableRoom + group.layers.size() * sizeof(int32_t);
    bytes += estimated_bytes(group.keys) + estimated_bytes(group.values);
    for (const MomentSums& sums : group.key_gradients) bytes += estimated_bytes(sums);
    for (const MomentSums& sums : group.value_gradients) bytes += estimated_bytes(sums);
  }
  return bytes;
}

Offset<calibration_file::Sums> write_sums(FlatBufferBuilder& builder, const MomentSums& sums) {
  const auto sum = builder.CreateVector(sums.sum);
  const auto products = builder.CreateVector(sums.products);
  const auto pending =
      sums.pending.empty() ? Offset<flatbuffers::Vector<float>>() : builder.CreateVector(sums.pending);
  return calibration_file::CreateSums(builder, sums.count, sum, products, pending);
}

SumsVector write_gradients(FlatBufferBuilder& builder, const std::vector<MomentSums>& layers) {
  if (layers.empty()) return {};
  std::vector<Offset<calibration_file::Sums>> sums;
  for (const MomentSums& layer : layers) sums.push_back(write_sums(builder, layer));
  return builder.CreateVector(sums);
}

Offset<calibration_file::Group> write_group(FlatBufferBuilder& builder, const CalibrationGroup& group) {
  const auto layers = builder.CreateVector(group.layers);
  const auto keys = write_sums(builder, group.keys);
  const auto values = write_sums(builder, group.values);
  const SumsVector key_gradients = write_gradients(builder, group.key_gradients);
  const SumsVector value_gradients = write_gradients(builder, group.value_gradients);
  return calibration_file::CreateGroup(builder, layers, keys, values, key_gradients, value_gradients);
}

void write_root(FlatBufferBuilder& builder, const CalibrationContent& content) {
  const auto name =
      content.model_name.empty() ? Offset<flatbuffers::String>() : builder.CreateString(content.model_name);
  const auto model = calibration_file::CreateModelIdentity(builder, content.model_fingerprint, name);
  std::vector<Offset<calibration_file::Group>> groups;
  for (const CalibrationGroup& group : content.groups) groups.push_back(write_group(builder, group));
  const auto group_vector = builder.CreateVector(groups);
  calibration_file::FinishCalibrationBuffer(
      builder, calibration_file::CreateCalibration(builder, calibration_file::kVersion, model, content.skip_tokens,
                                                   content.samples, group_vector));
}

}  // namespace

StatusOr<std::vector<uint8_t>> write_calibration(const CalibrationContent& content) {
  if (const Status status = check_calibration_content(content); !status.ok()) {
    return internal_error(absl::StrCat("sums of calibration contradict themselves: ", status.message()));
  }
  const size_t room = estimated_bytes(content);
  if (room > sealed_file::kMaxBytes - sealed_file::kAlignment) {
    return unsupported_error(absl::StrCat("the calibrator takes ", room, " bytes, a file holds ",
                                          sealed_file::kMaxBytes,
                                          " at most; use fewer layers per group"));
  }
  FlatBufferBuilder builder(room);
  write_root(builder, content);
  return sealed_file::seal(builder.GetBufferPointer(), builder.GetSize());
}

}  // namespace foldkv
