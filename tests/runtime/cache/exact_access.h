#pragma once

#include <cstdint>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/cache/sequence.h"

// Reading what a sequence holds, and writing exact rows, with plain vectors.
namespace foldkv::test {

[[nodiscard]] inline std::vector<float> rebuilt(const Sequence& sequence, int64_t layer, backend::Side side) {
  const int64_t tokens = sequence.storage().token_count();
  const int64_t width = sequence.model().layer(layer).key_width();
  std::vector<float> rows(static_cast<size_t>(tokens * width));
  const MutableTensorView view{reinterpret_cast<std::byte*>(rows.data()), NumberFormat::kF32, tokens, width, width};
  REQUIRE(sequence.rebuild({layer, side, false, 0, tokens}, view).ok());
  return rows;
}

// All layers and sides after each other.
[[nodiscard]] inline std::vector<float> everything(const Sequence& sequence) {
  std::vector<float> all;
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) {
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      const std::vector<float> rows = rebuilt(sequence, layer, side);
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  return all;
}

[[nodiscard]] inline Status replace_rows(Sequence& sequence, const ReplaceQuestion& question,
                                         const std::vector<float>& rows) {
  const int64_t width = sequence.model().layer(question.layer).key_width();
  return sequence.replace(question, {reinterpret_cast<const std::byte*>(rows.data()), NumberFormat::kF32,
                                     std::ssize(rows) / width, width, width});
}

}  // namespace foldkv::test
