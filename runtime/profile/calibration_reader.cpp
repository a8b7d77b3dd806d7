#include "runtime/profile/calibration_reader.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/profile/calibration_file.h"
#include "runtime/profile/calibration_generated.h"
#include "runtime/profile/read_numbers.h"
#include "runtime/profile/sealed_file.h"

namespace foldkv {
namespace {

using SumsVector = flatbuffers::Vector<flatbuffers::Offset<calibration_file::Sums>>;

// The deepest path is root, group, sums.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
// 3 for each group and 2 for each of its layers. The bound also ends loops over tables that share a place.
constexpr flatbuffers::uoffset_t kMaxTables = 1u << 16;

StatusOr<const calibration_file::Calibration*> verify(const uint8_t* buffer, size_t size) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = kMaxTables;
  flatbuffers::Verifier verifier(buffer, size, options);
  if (!calibration_file::VerifyCalibrationBuffer(verifier)) {
    return corrupt_error("the calibration's tables or offsets are not valid");
  }
  const calibration_file::Calibration* root = calibration_file::GetCalibration(buffer);
  FOLDKV_RETURN_IF_ERROR(sealed_file::check_version("calibration", root->version(), calibration_file::kVersion));
  return root;
}

uint64_t bytes_of(const calibration_file::Sums& sums) {
  return (uint64_t{sums.sum()->size()} + sums.products()->size()) * sizeof(double) +
         (sums.pending() == nullptr ? 0 : uint64_t{sums.pending()->size()} * sizeof(float));
}

uint64_t bytes_of(const SumsVector* layers) {
  uint64_t bytes = 0;
  if (layers == nullptr) return bytes;
  for (const calibration_file::Sums* sums : *layers) bytes += bytes_of(*sums);
  return bytes;
}

// The bytes of numbers that reading will take. Tables may share a place in the file, so that a small file can ask for
// much memory; an honest one never asks for more than it has.
uint64_t bytes_of_numbers(const calibration_file::Calibration& root) {
  uint64_t bytes = 0;
  for (const calibration_file::Group* group : *root.groups()) {
    bytes += uint64_t{group->layers()->size()} * sizeof(int32_t) + bytes_of(*group->keys()) +
             bytes_of(*group->values()) + bytes_of(group->key_gradients()) + bytes_of(group->value_gradients());
  }
  return bytes;
}

MomentSums read_sums(const calibration_file::Sums& source) {
  MomentSums sums;
  sums.count = source.count();
  sums.sum = read_numbers(*source.sum());
  sums.products = read_numbers(*source.products());
  if (source.pending() != nullptr) sums.pending = read_numbers(*source.pending());
  return sums;
}

std::vector<MomentSums> read_gradients(const SumsVector* source) {
  std::vector<MomentSums> layers;
  if (source == nullptr) return layers;
  for (const calibration_file::Sums* sums : *source) layers.push_back(read_sums(*sums));
  return layers;
}

CalibrationContent read_content(const calibration_file::Calibration& root) {
  CalibrationContent content;
  content.model_fingerprint = root.model()->fingerprint();
  content.model_name = read_text(root.model()->name());
  content.skip_tokens = root.skip_tokens();
  content.samples = root.samples();
  for (const calibration_file::Group* group : *root.groups()) {
    content.groups.push_back({read_numbers(*group->layers()), read_sums(*group->keys()), read_sums(*group->values()),
                              read_gradients(group->key_gradients()), read_gradients(group->value_gradients())});
  }
  return content;
}

}  // namespace

StatusOr<CalibrationContent> read_calibration(const void* bytes, size_t size) {
  if (bytes == nullptr) return argument_error("bytes", "bytes: got NULL, expected a calibration");
  const auto* file_bytes = static_cast<const uint8_t*>(bytes);
  FOLDKV_ASSIGN_OR_RETURN(
      const size_t buffer_size,
      sealed_file::check_envelope(file_bytes, size, {"calibration", calibration_file::CalibrationIdentifier()}));
  std::vector<uint64_t> copy;
  FOLDKV_ASSIGN_OR_RETURN(const calibration_file::Calibration* root,
                          verify(sealed_file::aligned(file_bytes, buffer_size, copy), buffer_size));
  if (bytes_of_numbers(*root) > buffer_size) {
    return corrupt_error("the calibration's tables share numbers that belong to one of them");
  }
  CalibrationContent content = read_content(*root);
  if (const Status status = check_calibration_content(content); !status.ok()) {
    return corrupt_error(absl::StrCat("the calibration contradicts itself: ", status.message()));
  }
  return content;
}

}  // namespace foldkv
