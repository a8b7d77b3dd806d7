#include <array>
#include <string>

#include "runtime/cache/sequence.h"

namespace foldkv {
namespace {

constexpr std::array<const char*, kRoleCount> kRoleNames = {"exact",     "latent",  "correction", "mean",
                                                            "positions", "profile", "model",      "scratch"};

// "0-3 70 90-99"
std::string runs_of(const std::vector<int32_t>& positions) {
  std::string text;
  for (size_t first = 0; first < positions.size();) {
    size_t end = first + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : " ", positions[first]);
    if (end - first > 1) absl::StrAppend(&text, "-", positions[end - 1]);
    first = end;
  }
  return text.empty() ? "none" : text;
}

void add_policy(const Sequence& sequence, std::string& text) {
  const SequencePolicy& policy = sequence.policy();
  absl::StrAppend(&text, "options: dtype ", name_of(policy.format), ", sinks ", policy.sink_tokens, ", recent ",
                  policy.recent_tokens, ", fold ", policy.fold_tokens.value_or(0), ", mean ",
                  policy.mean == MeanSource::kSequence ? "of the sequence" : "of the profile");
  const Profile* const profile = sequence.shared_profile()->data.profile.get();
  if (profile != nullptr) {
    absl::StrAppend(&text, ", plan ", profile->plans[policy.plan].name, ", profile ", absl::Hex(profile->fingerprint));
  }
  absl::StrAppend(&text, "\nmodel: ", sequence.model().layer_count(), " layers, ",
                  absl::Hex(sequence.model().fingerprint()), " \"", sequence.model().name(), "\"\n");
  if (policy.eviction == nullptr) return;
  const EvictionPolicy& rules = policy.eviction->policy;
  absl::StrAppend(&text, "eviction: ", rules.name.empty() ? "custom" : rules.name, ", scorer ",
                  static_cast<int>(rules.scoring.scorer), ", budget ", rules.budget.tokens, " or ",
                  rules.budget.keep_ratio.numerator, "/", rules.budget.keep_ratio.denominator, ", interval ",
                  rules.selection.interval, "\n");
}

void add_counts(const Sequence& sequence, std::string& text) {
  const SequenceStorage& storage = sequence.storage();
  const SequenceLife& life = sequence.life();
  absl::StrAppend(&text, "tokens: ", storage.token_count(), " fed, next position ", life.next_position, ", prompt ",
                  life.prompt_open ? "open" : absl::StrCat("ended at ", life.prompt_end), ", evicted before ",
                  life.evicted_before, ", energy lost of keys ", life.energies[0].share_lost(), ", of values ",
                  life.energies[1].share_lost(), "\n");
}

void add_bytes(const Sequence& sequence, std::string& text) {
  const Ledger ledger = sequence.ledger();
  absl::StrAppend(&text, "bytes: ", ledger.total(), ", shared ", sequence.shared_bytes(), ", spilled ",
                  sequence.spilled() ? "yes" : "no");
  for (size_t role = 0; role < kRoleCount; ++role) {
    const int64_t bytes = ledger.of(static_cast<Role>(role));
    if (bytes > 0) absl::StrAppend(&text, ", ", kRoleNames[role], " ", bytes);
  }
  absl::StrAppend(&text, "\n");
}

}  // namespace

StatusOr<std::string> Sequence::describe() const {
  const Reader reader(*this);
  std::string text;
  add_policy(*this, text);
  add_counts(*this, text);
  add_bytes(*this, text);
  for (const ExactSet& set : storage_.exact_sets()) {
    absl::StrAppend(&text, "set:");
    for (const int32_t index : set.planes) {
      const ExactPlane& plane = storage_.planes()[static_cast<size_t>(index)];
      absl::StrAppend(&text, " ", plane.layer);
      if (plane.head_count < model().layer(plane.layer).kv_heads) absl::StrAppend(&text, "/", plane.first_head);
    }
    const ExactPlane& plane = storage_.planes()[static_cast<size_t>(set.planes.front())];
    absl::StrAppend(&text, " | exact ", set.token_count, ", latents ", latent_tokens_of(plane.layer), ", budget ",
                    set.budget.tokens, " | positions ");
    if (spilled()) {
      absl::StrAppend(&text, "in the file\n");
      continue;
    }
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> positions, held_positions(plane.layer, plane.first_head));
    absl::StrAppend(&text, runs_of(positions), "\n");
  }
  return text;
}

}  // namespace foldkv
