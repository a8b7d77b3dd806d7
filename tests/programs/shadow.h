#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/programs/stage.h"
#include "tests/support/plain_attention.h"

namespace foldkv::test::programs {

// One token as it was fed, rounded to the format of the sequence: [layer][key width], one layer after the other.
struct FedToken {
  int64_t position = 0;
  std::vector<float> keys, values;
};

// Of every layer and KV head: what the library holds and rebuilds.
using HeldTokens = std::vector<std::vector<HeadTokens>>;

// How a sequence was created.
struct Terms {
  Recipe recipe = Recipe::kExact;
  int32_t dtype = FOLDKV_F16;
  bool evicts = false;
  int64_t sinks = 4;
  int64_t recent = 64;
  std::optional<int64_t> fold = 64;
};

// What the reference knows of a sequence: every token that was fed, and by the header's words how many of them are
// latents and what comes next.
class Shadow {
 public:
  Shadow(const Stage& stage, const Terms& terms) : stage_(&stage), terms_(terms) {}

  [[nodiscard]] const Terms& terms() const { return terms_; }
  [[nodiscard]] const Stage& stage() const { return *stage_; }
  [[nodiscard]] const std::vector<FedToken>& tokens() const { return tokens_; }
  [[nodiscard]] int64_t next_position() const { return next_position_; }
  // Of layers in a group, without eviction: tokens [sinks, sinks + latents) are latents.
  [[nodiscard]] int64_t latents() const { return latents_; }
  [[nodiscard]] bool is_latent(int64_t token) const {
    return token >= terms_.sinks && token < terms_.sinks + latents_;
  }
  // Tokens that share scales: whole runs of them become latents.
  [[nodiscard]] int64_t run_tokens() const;
  [[nodiscard]] bool has_groups() const;

  // Numbers of one KV head of a token, as the layer reads them.
  [[nodiscard]] const float* row(int64_t token, int32_t layer, int32_t head, int32_t side) const;
  [[nodiscard]] std::optional<int64_t> token_at(int64_t position) const;

  void feed(std::vector<FedToken> tokens, bool continues);
  void compress();
  // Without eviction.
  void truncate(int64_t position);
  void replace(int64_t token, int32_t layer, int32_t side, const float* row);

  // Compares what the library holds with what it may hold, and keeps it. reencoded: latents may have changed.
  void accept(HeldTokens held, bool reencoded);
  [[nodiscard]] const HeldTokens& held() const { return held_; }

  // A number in the sequence's format.
  [[nodiscard]] float rounded(float number) const;

 private:
  void encode(bool whole);
  void accept_head(int32_t layer, int32_t head, const HeadTokens& now, bool reencoded) const;
  void accept_row(int32_t layer, int32_t head, int32_t side, int64_t token, const float* now, const float* before,
                  bool reencoded) const;
  [[nodiscard]] double bound(int64_t token, int32_t layer, int32_t head, int32_t side, int32_t channel) const;
  [[nodiscard]] size_t offset(int32_t layer) const {
    return static_cast<size_t>(layer * stage_->key_width());
  }

  const Stage* stage_;
  Terms terms_;
  std::vector<FedToken> tokens_;
  int64_t next_position_ = 0;
  int64_t latents_ = 0;
  bool prompt_open_ = true;
  int64_t prompt_end_ = 0;
  HeldTokens held_;
};

}  // namespace foldkv::test::programs
