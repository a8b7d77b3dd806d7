#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/cache/snapshot/restore_sequences.h"
#include "runtime/cache/snapshot/save_sequences.h"
#include "runtime/policy/codec_profile.h"
#include "tests/runtime/cache/eviction_scene.h"
#include "tests/runtime/cache/toy_host.h"

// Snapshots in memory.
namespace foldkv::test {

using Bytes = std::vector<std::byte>;
using Sequences = std::vector<std::shared_ptr<Sequence>>;

[[nodiscard]] inline SaveOptions saving(int32_t compression = 0) {
  SaveOptions options;
  options.made_by = "test";
  options.compression = compression;
  return options;
}

[[nodiscard]] inline StatusOr<Bytes> try_save(const Sequences& sequences, const SaveOptions& options = saving()) {
  Bytes bytes;
  FOLDKV_RETURN_IF_ERROR(save_sequences(sequences, options, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return absl::OkStatus();
  }));
  return bytes;
}

[[nodiscard]] inline Bytes saved(const Sequences& sequences, const SaveOptions& options = saving()) {
  auto bytes = try_save(sequences, options);
  REQUIRE_MESSAGE(bytes.ok(), std::string(bytes.status().message()));
  return *std::move(bytes);
}

struct RestorePlace {
  std::shared_ptr<Runtime> runtime;
  const ToyHost* host = nullptr;
  std::shared_ptr<const Profile> profile;
};

[[nodiscard]] inline StatusOr<Sequences> try_restore(const RestorePlace& place, std::span<const std::byte> bytes,
                                                     const RestoreOptions& options = {}) {
  auto restored =
      restore_sequences(place.runtime, place.host->model(), place.profile, options, [&](std::span<std::byte> piece) {
        if (piece.size() > bytes.size()) return corrupt_error("ends too early");
        std::copy_n(bytes.begin(), piece.size(), piece.begin());
        bytes = bytes.subspan(piece.size());
        return absl::OkStatus();
      });
  if (restored.ok() && !bytes.empty()) return corrupt_error("goes on");
  return restored;
}

[[nodiscard]] inline Sequences restored(const RestorePlace& place, const Bytes& bytes, int64_t capacity = 1) {
  RestoreOptions options;
  options.capacity = capacity;
  auto sequences = try_restore(place, bytes, options);
  REQUIRE_MESSAGE(sequences.ok(), std::string(sequences.status().message()));
  return *std::move(sequences);
}

// Rows of every KV head of every layer as they are held, and their positions.
[[nodiscard]] inline std::vector<float> all_held(const Sequence& sequence) {
  std::vector<float> all;
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) {
    const int64_t width = sequence.model().layer(layer).head_size;
    for (int64_t head = 0; head < sequence.model().layer(layer).kv_heads; ++head) {
      const auto positions = sequence.positions(layer, head);
      REQUIRE(positions.ok());
      all.insert(all.end(), positions->begin(), positions->end());
      const auto tokens = std::ssize(*positions);
      for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
        std::vector<float> rows(static_cast<size_t>(tokens * width));
        const MutableTensorView view{reinterpret_cast<std::byte*>(rows.data()), NumberFormat::kF32, tokens, width,
                                     width};
        if (tokens > 0) REQUIRE(sequence.rebuild({layer, side, false, 0, tokens, head}, view).ok());
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
  return all;
}

// Ways to hold a sequence: without a profile, under a learned one, under every codec, under every policy.
struct Holding {
  std::string name;
  std::shared_ptr<const Profile> profile;
  SequencePolicy policy;
};

[[nodiscard]] std::vector<Holding> all_holdings(const ToyHost& host);

}  // namespace foldkv::test
