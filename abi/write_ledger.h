#pragma once

#include "foldkv/foldkv.h"
#include "runtime/memory/ledger.h"

namespace foldkv::abi {

[[nodiscard]] inline foldkv_ledger public_ledger(const Ledger& ledger) {
  const auto of = [&](Role role) { return static_cast<uint64_t>(ledger.of(role)); };
  foldkv_ledger result{};
  result.struct_size = sizeof(foldkv_ledger);
  result.exact = of(Role::kExact);
  result.latent = of(Role::kLatent);
  result.correction = of(Role::kCorrection);
  result.mean = of(Role::kMean);
  result.positions = of(Role::kPositions);
  result.profile = of(Role::kProfile);
  result.model = of(Role::kModel);
  result.scratch = of(Role::kScratch);
  return result;
}

}  // namespace foldkv::abi
