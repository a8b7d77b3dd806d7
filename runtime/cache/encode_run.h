#pragma once

#include <cstddef>

#include "runtime/base/cancellation.h"
#include "runtime/cache/kept_tokens.h"

// Moving a run of exact tokens into latents: centre, project, quantize, correct. The pages were reserved with the
// same StorageChange; nothing counts until the sequence publishes it.
namespace foldkv {

// Of a group's tokens in all latent operations.
[[nodiscard]] backend::LatentShape latent_shape(const PreparedGroup& group, size_t plan, int64_t tokens);

// Of the backend's latent operations for a run of that many tokens of this profile under one of its plans.
[[nodiscard]] int64_t encode_workspace(const backend::Backend& backend, const PreparedProfile& profile, size_t plan,
                                       int64_t encoded_tokens);

// Writes latents, means, correction and positions of the tokens that become latents to unpublished slots, and tells the
// energies of their rows (measure_energy). Cancelled between groups. Numeric error when something does not fit its
// format: what is published is untouched.
[[nodiscard]] StatusOr<Energies> encode_run(Sequence& sequence, const StorageChange& change, const KeptTokens& kept,
                                            std::byte* workspace, Cancellation cancellation = Cancellation());

}  // namespace foldkv
