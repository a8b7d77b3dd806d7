#pragma once

#include <cstddef>
#include <span>

#include "runtime/cache/sequence.h"

// Moving a run of exact tokens into latents: centre, project, quantize, correct. The pages were reserved with the
// same StorageChange; nothing counts until the sequence publishes it.
namespace foldkv {

// Of the backend's latent operations for a run of that many tokens of this profile under one of its plans.
[[nodiscard]] int64_t encode_workspace(const backend::Backend& backend, const PreparedProfile& profile, size_t plan,
                                       int64_t encoded_tokens);

// Writes latents, means, correction and positions of the encoded run to unpublished slots, and tells the energies of its
// rows (measure_energy). Numeric error when something does not fit its format: what is published is untouched.
[[nodiscard]] StatusOr<Energies> encode_run(Sequence& sequence, const StorageChange& change, std::byte* workspace);

// Exact tokens behind the encoded run of a change; 0 without such a run.
[[nodiscard]] size_t moved_tokens(const Sequence& sequence, const StorageChange& change);

// Moves the exact rows behind the encoded run down onto it; the sequence must publish the change next. Does nothing
// without a run. positions: room for moved_tokens(), so that this step of a commit allocates nothing.
[[nodiscard]] Status close_gap(Sequence& sequence, const StorageChange& change, std::span<int32_t> positions);

}  // namespace foldkv
