#pragma once

#include <cstdint>

#include "runtime/cache/sequence.h"

namespace foldkv {

enum class Region { kExact, kLatent };

// Where a run of tokens lies.
struct TokenRun {
  Region region = Region::kExact;
  int64_t slot = 0;
  int64_t count = 0;
};

// The longest run of held tokens of a KV head that begins at the token of this number and stays in one region.
[[nodiscard]] inline TokenRun token_run(const Sequence& sequence, int64_t layer, int64_t head, int64_t token) {
  const SequenceStorage& storage = sequence.storage();
  const ExactSet& set = storage.set_of(layer, head);
  const int64_t latents = sequence.latent_tokens_of(layer);
  if (latents == 0) return {Region::kExact, token, set.token_count - token};
  const int64_t sinks = storage.sink_slots();
  if (token < sinks) return {Region::kExact, token, sinks - token};
  if (token < sinks + latents) return {Region::kLatent, token - sinks, sinks + latents - token};
  return {Region::kExact, token - latents, set.token_count + latents - token};
}

}  // namespace foldkv
