#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/policy/named_policies.h"
#include "tests/runtime/cache/toy_host.h"

namespace foldkv::test {

// Numbers that allocators ask the host for, one for each layer.
[[nodiscard]] inline std::vector<double> numbers_of_layers(int64_t layers) {
  std::vector<double> numbers;
  for (int64_t layer = 0; layer < layers; ++layer) numbers.push_back(0.2 + 0.1 * static_cast<double>((layer * 5) % 7));
  return numbers;
}

// A named policy that keeps so many tokens, with small windows that a short prompt has room for.
[[nodiscard]] inline EvictionPolicy small_policy(const std::string& name, int64_t tokens, int64_t layers) {
  auto found = find_policy(name);
  REQUIRE_MESSAGE(found.ok(), std::string(found.status().message()));
  EvictionPolicy policy = *found;
  if (policy.scoring.scorer == Scorer::kNone) return policy;
  if (policy.selection.window_tokens > 0) policy.selection.window_tokens = 8;
  policy.budget.keep_ratio = {};
  policy.budget.ratio_of_unprotected = false;
  policy.budget.tokens = tokens;
  policy.budget.floor_tokens = std::min<int64_t>(policy.budget.floor_tokens, tokens / 2);
  const LayerAllocator allocator = policy.budget.layers;
  if (allocator == LayerAllocator::kRipple || allocator == LayerAllocator::kImportance ||
      allocator == LayerAllocator::kEpisode) {
    policy.budget.layer_numbers = numbers_of_layers(layers);
  }
  return policy;
}

[[nodiscard]] inline SequencePolicy evicting(EvictionPolicy policy, NumberFormat format = NumberFormat::kF32) {
  SequencePolicy result;
  result.format = format;
  auto eviction = std::make_shared<SequenceEviction>();
  eviction->policy = std::move(policy);
  eviction->layers_per_group = 2;
  result.eviction = std::move(eviction);
  return result;
}

// Of each KV head of a layer.
[[nodiscard]] inline KeptByHead kept_by_head(const Sequence& sequence, int64_t layer) {
  KeptByHead kept;
  for (int64_t head = 0; head < sequence.model().layer(layer).kv_heads; ++head) {
    auto positions = sequence.positions(layer, head);
    REQUIRE(positions.ok());
    kept.push_back(*positions);
  }
  return kept;
}

[[nodiscard]] inline std::vector<KeptByHead> kept_everywhere(const Sequence& sequence) {
  std::vector<KeptByHead> kept;
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) kept.push_back(kept_by_head(sequence, layer));
  return kept;
}

// Names of the policies that evict and need no more than attention and values.
[[nodiscard]] inline std::vector<std::string> evicting_policies() {
  std::vector<std::string> names;
  for (const NamedPolicy& named : named_policies()) {
    if (named.policy.scoring.scorer != Scorer::kNone) names.push_back(named.policy.name);
  }
  return names;
}

}  // namespace foldkv::test
