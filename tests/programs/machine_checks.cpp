#include <cstring>

#include "tests/programs/machine.h"
#include "tests/programs/mismatch.h"

// What the library says, beside what the reference knows.
namespace foldkv::test::programs {
namespace {

uint64_t sum_of(const foldkv_ledger& ledger) {
  return ledger.exact + ledger.latent + ledger.correction + ledger.mean + ledger.positions + ledger.profile +
         ledger.model + ledger.scratch;
}

bool equal(const foldkv_sequence_stats& a, const foldkv_sequence_stats& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

foldkv_sequence_stats Machine::stats_of(const Live& live) const {
  auto stats = sized<foldkv_sequence_stats>();
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_sequence_get_stats(live.handle.get(), &stats, &error) == FOLDKV_OK, "stats: ", error.message);
  return stats;
}

foldkv_runtime_stats Machine::runtime_stats() const {
  auto stats = sized<foldkv_runtime_stats>();
  expect(foldkv_runtime_get_stats(runtime_.get(), &stats, nullptr) == FOLDKV_OK, "no stats of the runtime");
  return stats;
}

bool Machine::read_held(const Live& live, HeldTokens& held) const {
  const auto works = [&](foldkv_status status, const foldkv_error& error) {
    const bool no_room = small_budget_ && status == FOLDKV_E_BUDGET;
    expect(status == FOLDKV_OK || no_room, "reading s", live.name, ": ", error.argument, " ", error.message);
    return !no_room;
  };
  held.assign(stage_.layers().size(), {});
  for (int32_t layer = 0; layer < stage_.layer_count(); ++layer) {
    const LayerShape& shape = stage_.layers()[static_cast<size_t>(layer)];
    for (int32_t head = 0; head < shape.kv_heads; ++head) {
      HeadTokens& tokens = held[static_cast<size_t>(layer)].emplace_back();
      foldkv_error error = sized<foldkv_error>();
      const auto most = static_cast<int64_t>(live.shadow.tokens().size());
      tokens.positions.resize(static_cast<size_t>(most));
      int64_t count = 0;
      if (!works(foldkv_sequence_get_kept_positions(live.handle.get(), layer, head, tokens.positions.data(), most,
                                                    &count, &error),
                 error)) {
        return false;
      }
      tokens.positions.resize(static_cast<size_t>(count));
      if (count == 0) continue;
      auto options = sized<foldkv_rebuild_options>();
      options.layer = layer;
      options.one_head = 1;
      options.kv_head = head;
      for (std::vector<float>* rows : {&tokens.keys, &tokens.values}) {
        options.side = rows == &tokens.keys ? FOLDKV_KEYS : FOLDKV_VALUES;
        rows->resize(static_cast<size_t>(count * shape.head_size));
        const foldkv_tensor output{rows->data(), FOLDKV_F32, FOLDKV_HOST, 3, 0, {count, 1, shape.head_size, 0}, {}};
        if (!works(foldkv_sequence_rebuild(live.handle.get(), &options, &output, &error), error)) return false;
      }
    }
  }
  return true;
}

void Machine::check(Live& live, bool reencoded) {
  check_stats(live);
  HeldTokens held;
  if (!read_held(live, held)) return;
  try {
    live.shadow.accept(std::move(held), reencoded);
  } catch (const Mismatch& mismatch) {
    throw Mismatch(absl::StrCat("s", live.name, ": ", mismatch.what()));
  }
}

void Machine::check_stats(const Live& live) const {
  const foldkv_sequence_stats stats = stats_of(live);
  const Shadow& shadow = live.shadow;
  const auto tokens = static_cast<int64_t>(shadow.tokens().size());
  expect(stats.tokens == tokens, "s", live.name, " says it has ", stats.tokens, " tokens, fed were ", tokens);
  expect(stats.next_position == shadow.next_position(), "s", live.name, " goes on at ", stats.next_position,
         ", expected ", shadow.next_position());
  expect(stats.bytes == sum_of(stats.ledger), "s", live.name, ": bytes ", stats.bytes, ", ledger ",
         sum_of(stats.ledger));
  expect(stats.shared_bytes <= stats.bytes, "s", live.name, " shares more than it holds");
  if (shadow.terms().evicts) return;
  expect(stats.held_head_tokens == stats.fed_head_tokens, "s", live.name, " has lost tokens");
  expect(stats.lowest_truncation == 0, "s", live.name, " says that it has evicted tokens");
  if (!shadow.has_groups()) return;
  expect(stats.latent_tokens == shadow.latents() && stats.exact_tokens == tokens - shadow.latents(), "s", live.name,
         ": ", stats.latent_tokens, " latents and ", stats.exact_tokens, " exact tokens, expected ", shadow.latents(),
         " of ", tokens);
}

void Machine::check_ledger() const {
  const foldkv_runtime_stats stats = runtime_stats();
  expect(stats.used_bytes == sum_of(stats.ledger), "used ", stats.used_bytes, ", ledger ", sum_of(stats.ledger));
  expect(stats.used_bytes <= stats.budget_bytes, "used ", stats.used_bytes, " of ", stats.budget_bytes);
  expect(stats.ledger.scratch == 0, stats.ledger.scratch, " bytes of scratch outside of any call");
  expect(stats.sequence_count == static_cast<int64_t>(lives_.size()), stats.sequence_count, " sequences, expected ",
         lives_.size());
  uint64_t held = 0;
  uint64_t shared = 0;
  int64_t spilled = 0;
  for (const auto& live : lives_) {
    const foldkv_sequence_stats of = stats_of(*live);
    held += of.bytes;
    shared += of.shared_bytes;
    spilled += of.spilled;
  }
  const uint64_t of_sequences = stats.used_bytes - stats.ledger.profile - stats.ledger.model;
  // A shared page is counted by two sequences at least, and by the runtime once.
  expect(of_sequences <= held - shared + shared / 2 && of_sequences >= held - shared, "the runtime says ", of_sequences,
         " bytes of sequences, they say ", held, ", of these ", shared, " shared");
  expect(stats.spilled_sequences == spilled, stats.spilled_sequences, " sequences in files, expected ", spilled);
}

Machine::Ledgers Machine::ledgers() const {
  Ledgers all{runtime_stats(), {}};
  // Neither is undone.
  all.runtime.peak_bytes = all.runtime.resident_bytes = 0;
  for (const auto& live : lives_) all.sequences.emplace_back(live->name, stats_of(*live));
  return all;
}

void Machine::check_unchanged(const Ledgers& before) {
  const Ledgers now = ledgers();
  bool comparable = now.sequences.size() == before.sequences.size();
  for (const auto& [name, stats] : now.sequences) {
    for (const auto& [old_name, old] : before.sequences) {
      if (name != old_name) continue;
      // A call that fails may have brought a spilled sequence back, and the host may have released one.
      const bool same_place = old.spilled == stats.spilled && now.sequences.size() == before.sequences.size();
      comparable = comparable && same_place;
      expect(!same_place || equal(old, stats), "a call has failed, and the stats of s", name, " have changed");
    }
  }
  expect(!comparable || std::memcmp(&now.runtime, &before.runtime, sizeof(now.runtime)) == 0,
         "a call has failed, and the runtime's stats have changed: used ", before.runtime.used_bytes, ", now ",
         now.runtime.used_bytes);
  for (const auto& live : lives_) check_stats(*live);
  for (const auto& live : lives_) {
    if (stats_of(*live).spilled == 0) check(*live);
  }
}

bool Machine::succeeded(foldkv_status status, const foldkv_error& error, const Ledgers& before) {
  ++tally_.statuses[static_cast<size_t>(status)];
  if (status == FOLDKV_OK) return true;
  expect(status == FOLDKV_E_BUDGET && small_budget_, text_.back(), " failed: ", foldkv_status_name(status), " ",
         error.argument, " ", error.message);
  say("  does not fit");
  check_unchanged(before);
  return false;
}

void Machine::check_refused(foldkv_status got, foldkv_status expected, const Ledgers& before) {
  const bool no_room = got == FOLDKV_E_BUDGET && small_budget_;
  ++tally_.statuses[static_cast<size_t>(got)];
  expect(got == expected || no_room, text_.back(), ": ", foldkv_status_name(got), ", expected ",
         foldkv_status_name(expected));
  check_unchanged(before);
}

}  // namespace foldkv::test::programs
