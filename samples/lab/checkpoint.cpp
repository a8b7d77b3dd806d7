#include "samples/lab/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "samples/lab/foldkv_error.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/write_file.h"

namespace foldkv_lab {
namespace {

constexpr absl::string_view kLetters = "FKVLABC1";
constexpr size_t kHashBytes = 8;
constexpr size_t kHeadBytes = 8 + kHashBytes;

// FNV-1a, 64 bits.
class Hash {
 public:
  void add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ ((number >> shift) & 0xff)) * 0x100000001b3u;
    }
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace

uint64_t hash_of_samples(std::span<const TextSample> samples, bool gradients) {
  Hash hash;
  hash.add(gradients ? 1 : 0);
  for (const TextSample& sample : samples) {
    hash.add(sample.tokens.size());
    for (const Token token : sample.tokens) hash.add(static_cast<uint64_t>(token));
  }
  return hash.value();
}

absl::Status save_checkpoint(const foldkv::Calibrator& calibrator, uint64_t samples_hash, const std::string& path) {
  LAB_ASSIGN_OR_RETURN_FOLDKV(const std::vector<std::byte> sums, "saving the calibrator", calibrator.save());
  std::array<std::byte, kHeadBytes> head;
  std::transform(kLetters.begin(), kLetters.end(), head.begin(),
                 [](char letter) { return static_cast<std::byte>(letter); });
  for (size_t i = 0; i < kHashBytes; ++i) {
    head[kLetters.size() + i] = static_cast<std::byte>((samples_hash >> (8 * i)) & 0xff);
  }
  return write_file(path, {head, sums});
}

absl::StatusOr<Checkpoint> load_checkpoint(FoldkvHost& host, const std::string& path) {
  LAB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kLetters.size()) != kLetters || bytes.size() < kHeadBytes) {
    return absl::DataLossError(absl::StrCat(path, " is no checkpoint of a calibration"));
  }
  uint64_t hash = 0;
  for (size_t i = 0; i < kHashBytes; ++i) hash |= std::to_integer<uint64_t>(bytes[kLetters.size() + i]) << (8 * i);
  LAB_ASSIGN_OR_RETURN_FOLDKV(
      foldkv::Calibrator calibrator, absl::StrCat("loading the checkpoint ", path),
      foldkv::Calibrator::load(host.runtime(), host.foldkv_model(), bytes.subspan(kHeadBytes)));
  return Checkpoint{std::move(calibrator), hash};
}

}  // namespace foldkv_lab
