#pragma once

#include <memory>

#include "foldkv/foldkv.h"
#include "runtime/cache/sequence_policy.h"

namespace foldkv::abi {

// Null for null, and for a policy that evicts nothing. Argument errors name the field of the struct.
[[nodiscard]] StatusOr<std::shared_ptr<const SequenceEviction>> read_eviction(const foldkv_eviction* source,
                                                                              const Model& model);

// The parts of a policy, without what the host knows.
[[nodiscard]] foldkv_eviction public_eviction(const EvictionPolicy& policy);

// An error that names a part of a policy as the inside does, with the name of the struct's field; others as they are.
[[nodiscard]] Status with_public_field(const Status& status);

}  // namespace foldkv::abi
