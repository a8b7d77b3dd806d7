#pragma once

#include "runtime/cache/sequence.h"

// Moving a run of exact tokens into latents: centre, project, quantize, correct. The pages were reserved with the
// same StorageChange; nothing counts until the sequence publishes it.
namespace foldkv {

// Of the backend's latent operations for a run of that many tokens of this profile.
[[nodiscard]] int64_t encode_workspace(const backend::Backend& backend, const PreparedProfile& profile,
                                       int64_t encoded_tokens);

// Writes latents, means, correction and positions of the encoded run to unpublished slots. Numeric error when
// something does not fit its format: what is published is untouched.
[[nodiscard]] Status encode_run(Sequence& sequence, const StorageChange& change, std::byte* workspace);

// Moves the exact rows behind the encoded run down onto it. Call after encode_run of every sequence of the step.
[[nodiscard]] Status close_gap(Sequence& sequence, const StorageChange& change);

// encode_run and close_gap with a workspace of their own.
[[nodiscard]] Status encode_with_scratch(Sequence& sequence, const StorageChange& change);

}  // namespace foldkv
