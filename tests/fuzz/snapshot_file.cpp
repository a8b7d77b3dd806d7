// A snapshot from anywhere: inspecting it, restoring its sequences, and a short life of each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "foldkv/foldkv.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/snapshot_seal.h"
#include "tests/fuzz/world.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace foldkv::fuzz {
namespace {

constexpr int32_t kMostSequences = 3;

struct Input {
  const uint8_t* data;
  size_t size;

  static int32_t read(void* context, void* target, size_t size) {
    auto* input = static_cast<Input*>(context);
    if (size > input->size) return 1;
    std::memcpy(target, input->data, size);
    input->data += size;
    input->size -= size;
    return 0;
  }
};

void rebuild_all(const foldkv_sequence* sequence) {
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    for (int32_t head = 0; head < kKvHeads; ++head) {
      int64_t count = 0;
      must(allowed(foldkv_sequence_get_kept_positions(sequence, layer, head, nullptr, 0, &count, nullptr)),
           "positions are counted");
      if (count == 0) continue;
      std::vector<float> rows(static_cast<size_t>(count * kHeadSize));
      auto options = sized<foldkv_rebuild_options>();
      options.layer = layer;
      options.one_head = 1;
      options.kv_head = head;
      const foldkv_tensor output = rows_of(rows, count, 1);
      (void)allowed(foldkv_sequence_rebuild(sequence, &options, &output, nullptr));
    }
  }
}

// What was accepted can be written, and read again.
void save_again(const foldkv_sequence* sequence, const foldkv_profile* profile) {
  size_t size = 0;
  must(allowed(foldkv_sequence_save(sequence, nullptr, nullptr, 0, &size, nullptr)), "the sequence can be saved");
  std::vector<uint8_t> bytes(size);
  must(allowed(foldkv_sequence_save(sequence, nullptr, bytes.data(), size, &size, nullptr)), "and is");
  foldkv_sequence* again = nullptr;
  must(allowed(foldkv_sequence_restore(runtime(), model(), profile, nullptr, bytes.data(), size, &again, nullptr)),
       "what was saved can be restored");
  foldkv_sequence_release(again);
}

void live(foldkv_sequence* sequence, const foldkv_profile* profile) {
  auto stats = sized<foldkv_sequence_stats>();
  must(allowed(foldkv_sequence_get_stats(sequence, &stats, nullptr)), "there are stats");
  size_t size = 0;
  must(allowed(foldkv_sequence_describe(sequence, nullptr, 0, &size, nullptr)), "there is a description");
  rebuild_all(sequence);
  save_again(sequence, profile);
  foldkv_sequence* fork = nullptr;
  must(allowed(foldkv_sequence_fork(sequence, &fork, nullptr)), "there is a fork");
  (void)feed(sequence, 3);
  (void)feed(sequence, 40, FOLDKV_FEED_CONTINUES);
  (void)allowed(foldkv_sequence_compress(sequence, nullptr));
  rebuild_all(sequence);
  (void)allowed(foldkv_sequence_truncate(fork, stats.next_position / 2, nullptr));
  (void)feed(fork, 70);
  rebuild_all(fork);
  foldkv_sequence_release(fork);
}

void restore(const uint8_t* data, size_t size, const foldkv_profile* profile) {
  Input input{data, size};
  foldkv_sequence* sequences[kMostSequences] = {};
  int32_t count = 0;
  if (!allowed(foldkv_sequences_restore(runtime(), model(), profile, nullptr, Input::read, &input, sequences,
                                        kMostSequences, &count, nullptr))) {
    return;
  }
  ++accepted;
  for (int32_t index = 0; index < count; ++index) live(sequences[index], profile);
  for (int32_t index = 0; index < count; ++index) foldkv_sequence_release(sequences[index]);
}

}  // namespace
}  // namespace foldkv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foldkv::fuzz;
  Input input{data, size};
  auto info = sized<foldkv_snapshot_info>();
  if (!allowed(foldkv_snapshot_inspect(Input::read, &input, &info, nullptr, 0, nullptr))) return 0;
  for (int32_t index = 0; index < kSnapshotProfiles; ++index) restore(data, size, snapshot_profile(index));
  auto stats = sized<foldkv_runtime_stats>();
  must(allowed(foldkv_runtime_get_stats(runtime(), &stats, nullptr)), "there are stats");
  must(stats.used_bytes == 0, "every byte is given back");
  return 0;
}

// Three quarters of the inputs keep checksums that fit.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 != 0) foldkv::fuzz::seal_snapshot(data, size);
  return size;
}
