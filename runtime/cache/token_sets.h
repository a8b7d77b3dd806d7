#pragma once

#include <cstdint>
#include <vector>

#include "backends/interface/layout.h"
#include "runtime/cache/prepared.h"
#include "runtime/cache/sequence_policy.h"
#include "runtime/memory/page_list.h"

namespace foldkv {

// Small pages: a sequence with few exact tokens would otherwise pay for empty slots in every layer.
inline constexpr int64_t kExactPageTokens = 16;

// What an eviction policy lets a set hold.
struct TokenBudget {
  int64_t tokens = 0;  // 0: not decided yet
  int64_t recent = 0;  // of them, those that are the newest
};

// Exact keys and values of adjacent KV heads of one layer.
struct ExactPlane {
  int32_t layer = 0;
  int32_t first_head = 0;
  int32_t head_count = 0;
  backend::ExactLayout layout;
  PageList pages;
};

// Planes that hold the same tokens.
//
//   slots   | sinks | recent and generated tokens |      rising positions, no holes
struct ExactSet {
  std::vector<int32_t> planes;  // indices of the sequence's planes
  int32_t group = -1;           // with eviction: the layer group whose layers these are
  bool grouped = false;         // the layers belong to groups: tokens between sinks and recent ones move to latents
  bool evicts = false;          // an eviction policy decides which tokens stay
  TokenBudget budget;
  int64_t token_count = 0;
  PageList tokens;              // token_pages.h
};

// Layer groups that hold the same tokens as latents.
struct LatentSet {
  std::vector<int32_t> groups;
  int32_t exact_set = -1;       // of the layers of these groups
  int64_t token_count = 0;
  PageList tokens;
};

// How the layers and heads of a sequence share tokens.
struct TokenSets {
  std::vector<ExactPlane> planes;        // by layer, then head; none for a layer that reads another one's
  std::vector<int32_t> first_plane;      // of each layer, and one beyond
  std::vector<int32_t> set_of_plane;
  std::vector<ExactSet> exact;
  std::vector<LatentSet> latent;
  std::vector<int32_t> latent_of_group;
};

[[nodiscard]] TokenSets make_token_sets(const Model& model, const PreparedProfile& profile, const SequencePolicy& policy);

}  // namespace foldkv
