#include "tests/programs/shadow.h"

#include <algorithm>
#include <cmath>

#include "tests/programs/codec_bound.h"
#include "tests/programs/mismatch.h"

namespace foldkv::test::programs {

int64_t Shadow::run_tokens() const {
  switch (terms_.recipe) {
    case Recipe::kKivi4:
    case Recipe::kKivi2: return kKiviRun;
    case Recipe::kMiniCache: return kMiniCachePage;
    default: return 1;
  }
}

bool Shadow::has_groups() const {
  for (int32_t layer = 0; layer < stage_->layer_count(); ++layer) {
    if (stage_->grouped(terms_.recipe, layer)) return true;
  }
  return false;
}

const float* Shadow::row(int64_t token, int32_t layer, int32_t head, int32_t side) const {
  const FedToken& fed = tokens_[static_cast<size_t>(token)];
  const int64_t at = head * stage_->layers()[static_cast<size_t>(layer)].head_size;
  return (side == FOLDKV_KEYS ? fed.keys : fed.values).data() + offset(stage_->source(terms_.recipe, layer)) + at;
}

std::optional<int64_t> Shadow::token_at(int64_t position) const {
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), position,
                                      [](const FedToken& token, int64_t wanted) { return token.position < wanted; });
  if (found == tokens_.end() || found->position != position) return std::nullopt;
  return found - tokens_.begin();
}

void Shadow::feed(std::vector<FedToken> tokens, bool continues) {
  for (FedToken& token : tokens) tokens_.push_back(std::move(token));
  next_position_ = tokens_.back().position + 1;
  if (continues) return;
  encode(prompt_open_);
  if (prompt_open_) prompt_end_ = next_position_;
  prompt_open_ = false;
}

void Shadow::compress() {
  const int64_t before = latents_;
  encode(true);
  if (latents_ == before && !terms_.evicts) return;
  if (prompt_open_) prompt_end_ = next_position_;
  prompt_open_ = false;
}

// "0: 64; generated tokens are folded in runs of this many, once recent_tokens plus one run are exact ... The first run
// of a sequence has 16 tokens at least, of a prompt too: fewer wait for more."
void Shadow::encode(bool whole) {
  if (!has_groups()) return;
  const int64_t spare = std::ssize(tokens_) - latents_ - terms_.sinks - terms_.recent;
  if (spare <= 0) return;
  int64_t count = whole ? spare : 0;
  if (!whole && terms_.fold.has_value()) count = spare / *terms_.fold * *terms_.fold;
  count -= count % run_tokens();
  constexpr int64_t kFirstRun = 16;
  if (latents_ > 0 || count >= kFirstRun) latents_ += count;
}

void Shadow::truncate(int64_t position) {
  if (position == next_position_) return;
  const auto first = std::lower_bound(tokens_.begin(), tokens_.end(), position,
                                      [](const FedToken& token, int64_t wanted) { return token.position < wanted; });
  tokens_.erase(first, tokens_.end());
  next_position_ = position;
  prompt_open_ = prompt_open_ || position < prompt_end_ || position == 0;
  const int64_t left = std::clamp<int64_t>(std::ssize(tokens_) - terms_.sinks, 0, latents_);
  latents_ = left - left % run_tokens();
  // "Tokens of a codec whose runs of tokens share scales become exact again where a run is cut": what they were.
  for (int64_t token = terms_.sinks + latents_; token < terms_.sinks + left; ++token) {
    for (int32_t layer = 0; layer < stage_->layer_count(); ++layer) {
      const auto& heads = held_[static_cast<size_t>(layer)];
      for (size_t head = 0; head < heads.size(); ++head) {
        const int64_t size = stage_->layers()[static_cast<size_t>(layer)].head_size;
        const size_t at = offset(layer) + head * static_cast<size_t>(size);
        FedToken& fed = tokens_[static_cast<size_t>(token)];
        for (int64_t i = 0; i < size; ++i) {
          fed.keys[at + static_cast<size_t>(i)] = rounded(heads[head].keys[static_cast<size_t>(token * size + i)]);
          fed.values[at + static_cast<size_t>(i)] = rounded(heads[head].values[static_cast<size_t>(token * size + i)]);
        }
      }
    }
  }
}

void Shadow::replace(int64_t token, int32_t layer, int32_t side, const float* row) {
  FedToken& fed = tokens_[static_cast<size_t>(token)];
  float* const to = (side == FOLDKV_KEYS ? fed.keys : fed.values).data() + offset(layer);
  std::transform(row, row + stage_->key_width(), to, [this](float number) { return rounded(number); });
}

float Shadow::rounded(float number) const {
  if (terms_.dtype == FOLDKV_F32 || number == 0.0F) return number;
  const int32_t bits = terms_.dtype == FOLDKV_F16 ? 11 : 8;
  const int32_t lowest = terms_.dtype == FOLDKV_F16 ? -24 : -133;
  int32_t exponent = 0;
  (void)std::frexp(number, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - bits, lowest));
  return static_cast<float>(std::nearbyint(number / step) * step);
}

void Shadow::accept(HeldTokens held, bool reencoded) {
  for (int32_t layer = 0; layer < stage_->layer_count(); ++layer) {
    for (size_t head = 0; head < held[static_cast<size_t>(layer)].size(); ++head) {
      accept_head(layer, static_cast<int32_t>(head), held[static_cast<size_t>(layer)][head], reencoded);
    }
  }
  held_ = std::move(held);
}

void Shadow::accept_head(int32_t layer, int32_t head, const HeadTokens& now, bool reencoded) const {
  static const HeadTokens kNothing;
  const HeadTokens& before =
      held_.empty() ? kNothing : held_[static_cast<size_t>(layer)][static_cast<size_t>(head)];
  const int64_t size = stage_->layers()[static_cast<size_t>(layer)].head_size;
  expect(terms_.evicts || now.positions.size() == tokens_.size(), "layer ", layer, " head ", head, " holds ",
         now.positions.size(), " tokens, expected ", tokens_.size());
  int64_t last = -1;
  for (size_t index = 0; index < now.positions.size(); ++index) {
    const int64_t position = now.positions[index];
    expect(position > last, "layer ", layer, " head ", head, ": positions do not rise at ", position);
    last = position;
    const std::optional<int64_t> token = token_at(position);
    expect(token.has_value(), "layer ", layer, " head ", head, " holds a position that was not fed: ", position);
    const auto old = std::lower_bound(before.positions.begin(), before.positions.end(), position);
    const bool was_held = old != before.positions.end() && *old == position;
    // What was never read yet is new; among what was, an evicted token does not come back.
    expect(was_held || before.positions.empty() || position > before.positions.back(), "layer ", layer, " head ", head,
           ": the token at ", position, " was evicted, and is there again");
    for (const int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
      const auto rows = [&](const HeadTokens& tokens, int64_t row) {
        return (side == FOLDKV_KEYS ? tokens.keys : tokens.values).data() + row * size;
      };
      accept_row(layer, head, side, *token, rows(now, static_cast<int64_t>(index)),
                 was_held ? rows(before, old - before.positions.begin()) : nullptr, reencoded);
    }
  }
}

void Shadow::accept_row(int32_t layer, int32_t head, int32_t side, int64_t token, const float* now,
                        const float* before, bool reencoded) const {
  const int64_t size = stage_->layers()[static_cast<size_t>(layer)].head_size;
  const float* const fed = row(token, layer, head, side);
  const auto place = [&] {
    return absl::StrCat("layer ", layer, " head ", head, side == FOLDKV_KEYS ? " key " : " value ", token, ": ");
  };
  if (std::equal(now, now + size, fed)) return;
  const bool may_be_latent = stage_->grouped(terms_.recipe, layer) && (terms_.evicts || is_latent(token));
  if (!may_be_latent) {
    for (int64_t i = 0; i < size; ++i) {
      expect(now[i] == fed[i], place(), "exact, channel ", i, " is ", now[i], ", fed was ", fed[i]);
    }
  }
  const bool was_latent = before != nullptr && !std::equal(before, before + size, fed);
  if (was_latent && !reencoded) {
    expect(std::equal(now, now + size, before), place(), "a latent has changed");
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    const double error = std::abs(double{now[i]} - fed[i]);
    const double most = bound(token, layer, head, side, static_cast<int32_t>(i));
    expect(error <= most, place(), "channel ", i, " is ", now[i], ", fed was ", fed[i], ", the codec's error is ", most,
           " at most");
  }
}

double Shadow::bound(int64_t token, int32_t layer, int32_t head, int32_t side, int32_t channel) const {
  const int64_t size = stage_->layers()[static_cast<size_t>(layer)].head_size;
  switch (terms_.recipe) {
    case Recipe::kInteger8: return symmetric_bound(row(token, layer, head, side), size, 8);
    case Recipe::kInteger4: return symmetric_bound(row(token, layer, head, side), size, 4);
    case Recipe::kKivi4:
    case Recipe::kKivi2: {
      const int32_t bits = terms_.recipe == Recipe::kKivi4 ? 4 : 2;
      Range range;
      if (side == FOLDKV_KEYS) {
        const int64_t first = token - (token - terms_.sinks) % kKiviRun;
        for (int64_t i = first; i < first + kKiviRun; ++i) range.add(row(i, layer, head, side)[channel]);
      } else {
        const float* const whole = row(token, layer, 0, side);
        const int64_t first = (head * size + channel) / kKiviRun * kKiviRun;
        const int64_t end = std::min(first + kKiviRun, stage_->key_width());
        for (int64_t i = first; i < end; ++i) range.add(whole[i]);
      }
      return asymmetric_bound(range, bits);
    }
    default: return kLargestNumber;
  }
}

}  // namespace foldkv::test::programs
