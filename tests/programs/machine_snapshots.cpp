#include <algorithm>
#include <cstring>

#include "tests/programs/machine.h"
#include "tests/programs/mismatch.h"

namespace foldkv::test::programs {
namespace {

constexpr size_t kMostSequences = 6;
constexpr int32_t kWriteFails = 77;

struct Sink {
  std::vector<uint8_t>* bytes;
  size_t fails_at;
};

int32_t write(void* context, const void* bytes, size_t size) {
  auto& sink = *static_cast<Sink*>(context);
  if (sink.bytes->size() + size > sink.fails_at) return kWriteFails;
  const auto* const first = static_cast<const uint8_t*>(bytes);
  sink.bytes->insert(sink.bytes->end(), first, first + size);
  return 0;
}

int32_t read(void* context, void* bytes, size_t size) {
  auto& rest = *static_cast<std::span<const uint8_t>*>(context);
  if (size > rest.size()) return kWriteFails;
  std::memcpy(bytes, rest.data(), size);
  rest = rest.subspan(size);
  return 0;
}

}  // namespace

// Others of the same profile: a snapshot has one.
std::vector<Machine::Live*> Machine::companions(Live& live, int64_t most) {
  std::vector<Live*> found = {&live};
  for (const auto& other : lives_) {
    const bool fits = other.get() != &live && other->shadow.terms().recipe == live.shadow.terms().recipe;
    if (fits && static_cast<int64_t>(found.size()) < most) found.push_back(other.get());
  }
  for (Live* one : found) one->busy = true;
  return found;
}

foldkv_status Machine::save(const std::vector<Live*>& lives, const foldkv_save_options& options,
                            std::vector<uint8_t>& bytes, size_t fails_at, foldkv_error* error) const {
  std::vector<const foldkv_sequence*> sequences;
  for (const Live* live : lives) sequences.push_back(live->handle.get());
  Sink sink{&bytes, fails_at};
  return foldkv_sequences_save(sequences.data(), static_cast<int32_t>(sequences.size()), &options, write, &sink, error);
}

foldkv_status Machine::restore(const std::vector<uint8_t>& bytes, Recipe recipe,
                               std::vector<Owned<foldkv_sequence>>& restored, foldkv_error* error) {
  std::span<const uint8_t> rest(bytes);
  std::array<foldkv_sequence*, kMostSequences> handles{};
  int32_t count = -1;
  const foldkv_status status =
      foldkv_sequences_restore(runtime_.get(), stage_.model(), stage_.profile(recipe), nullptr, read, &rest,
                               handles.data(), static_cast<int32_t>(handles.size()), &count, error);
  expect(status == FOLDKV_OK || (count == -1 && handles[0] == nullptr), "a call that failed has written its outputs");
  for (foldkv_sequence* handle : handles) {
    if (handle != nullptr) restored.emplace_back(handle);
  }
  expect(status != FOLDKV_OK || (count == static_cast<int32_t>(restored.size()) && rest.empty()), "restored ", count,
         " sequences, ", rest.size(), " bytes are left");
  return status;
}

void Machine::save_and_restore(const Operation& operation) {
  const std::vector<Live*> lives = companions(pick(operation), 1 + operation.choices[1] % 3);
  auto options = sized<foldkv_save_options>();
  options.compression = operation.choices[0] % 2 == 0 ? 0 : 3;
  std::string names;
  for (const Live* live : lives) absl::StrAppend(&names, " s", live->name);
  say("save", names, ", compression ", options.compression, "; restore");
  const Ledgers before = ledgers();
  std::vector<uint8_t> bytes;
  foldkv_error error = sized<foldkv_error>();
  if (!succeeded(save(lives, options, bytes, SIZE_MAX, &error), error, before)) return;
  std::vector<Shadow> shadows;
  std::vector<foldkv_sequence_stats> stats;
  for (const Live* live : lives) {
    shadows.push_back(live->shadow);
    stats.push_back(stats_of(*live));
  }
  const Recipe recipe = shadows[0].terms().recipe;
  const bool replaces = operation.choices[2] % 2 == 0 || lives_.size() + lives.size() > kMostSequences;
  if (replaces) {
    say("  the originals are released");
    std::erase_if(lives_, [&](const auto& live) { return std::find(lives.begin(), lives.end(), live.get()) != lives.end(); });
  }
  const Ledgers saved = ledgers();
  std::vector<Owned<foldkv_sequence>> restored;
  const Relief relief(*this);
  if (!succeeded(restore(bytes, recipe, restored, &error), error, saved)) return;
  expect(restored.size() == shadows.size(), restored.size(), " of ", shadows.size(), " came back");
  for (size_t index = 0; index < restored.size(); ++index) {
    const HeldTokens held = shadows[index].held();
    Live& live = add(restored[index].release(), shadows[index]);
    say("  s", live.name);
    check(live);
    const foldkv_sequence_stats now = stats_of(live);
    expect(now.lowest_truncation == stats[index].lowest_truncation && now.plan == stats[index].plan &&
               std::memcmp(now.energy_out_of_basis, stats[index].energy_out_of_basis, sizeof(now.energy_out_of_basis)) == 0 &&
               now.held_head_tokens == stats[index].held_head_tokens,
           "s", live.name, " came back with other stats");
  }
  Live& first = *lives_[lives_.size() - shadows.size()];
  if (!replaces && operation.choices[2] % 4 == 1) feed_twins(*lives[0], first, operation);
}

void Machine::save_badly(const Operation& operation) {
  const std::vector<Live*> lives = companions(pick(operation), 2);
  auto options = sized<foldkv_save_options>();
  options.compression = operation.choices[2] % 2;
  const Ledgers before = ledgers();
  std::vector<uint8_t> whole;
  foldkv_error error = sized<foldkv_error>();
  say("save s", lives[0]->name, ", the host's write fails on the way; then cancelled");
  if (!succeeded(save(lives, options, whole, SIZE_MAX, &error), error, before)) return;
  const Ledgers saved = ledgers();
  std::vector<uint8_t> part;
  const size_t fails_at = whole.size() * operation.choices[3] / 256;
  check_refused(save(lives, options, part, fails_at, &error), FOLDKV_E_FILE, saved);
  expect(error.native_code == kWriteFails, "native code ", error.native_code);
  expect(std::equal(part.begin(), part.end(), whole.begin()), "two saves of one sequence differ");
  const int32_t cancel = 1;
  options.cancel = &cancel;
  part.clear();
  check_refused(save(lives, options, part, SIZE_MAX, &error), FOLDKV_E_CANCELLED, saved);
}

void Machine::restore_damaged(const Operation& operation) {
  Live& live = pick(operation);
  const std::vector<Live*> lives = companions(live, 2);
  auto options = sized<foldkv_save_options>();
  options.compression = operation.choices[0] % 2 * 3;
  Ledgers before = ledgers();
  std::vector<uint8_t> bytes;
  foldkv_error error = sized<foldkv_error>();
  say("save s", live.name, ", restore damaged bytes");
  if (!succeeded(save(lives, options, bytes, SIZE_MAX, &error), error, before)) return;
  before = ledgers();
  const size_t place = bytes.size() * (operation.choices[2] * 256u + operation.choices[3]) / 65536;
  const bool cut = operation.choices[1] % 4 == 0;
  if (cut) bytes.resize(place);
  if (!cut) bytes[place] ^= static_cast<uint8_t>(1u << operation.choices[1] / 4 % 8);
  say(cut ? "  cut to " : "  a bit changed in byte ", place);
  std::vector<Owned<foldkv_sequence>> restored;
  const foldkv_status status = restore(bytes, live.shadow.terms().recipe, restored, &error);
  expect(restored.empty(), "damaged bytes were restored");
  const bool says_version = !cut && status == FOLDKV_E_VERSION;
  check_refused(status, cut ? FOLDKV_E_FILE : says_version ? FOLDKV_E_VERSION : FOLDKV_E_CORRUPT, before);
}

}  // namespace foldkv::test::programs
