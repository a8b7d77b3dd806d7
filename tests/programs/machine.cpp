#include "tests/programs/machine.h"

#include <algorithm>

#include "tests/programs/mismatch.h"

namespace foldkv::test::programs {

Machine::Machine(const Program& program, Tally& tally)
    : program_(program), tally_(tally), stage_(Stage::of(program.world[2] % Stage::kCount)) {}

Machine::~Machine() = default;

void Machine::open_runtime() {
  auto options = sized<foldkv_runtime_options>();
  options.backend = program_.world[0] % 4 == 0 ? "reference" : "cpu";
  options.threads = program_.world[0] % 4 == 0 ? 1 : 1 + program_.world[1] % 8 / 6 + program_.world[1] % 8 / 7;
  small_budget_ = program_.world[3] % 4 == 0;
  options.budget_bytes = small_budget_ ? (40u + program_.world[4]) << 10 : 8u << 20;
  relieves_ = program_.world[5] % 2 == 1;
  options.pressure = &Machine::relieve;
  options.pressure_context = this;
  options.spill_directory = "/tmp";
  foldkv_runtime* runtime = nullptr;
  foldkv_error error = sized<foldkv_error>();
  expect(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_OK, "runtime: ", error.message);
  runtime_.reset(runtime);
  say("runtime ", options.backend, ", ", options.threads, " threads, ", options.budget_bytes >> 10, " KiB; model ",
      program_.world[2] % Stage::kCount, ": ", stage_.layer_count(), " layers of ", stage_.layers()[0].query_heads, "/",
      stage_.layers()[0].kv_heads, " heads of ", stage_.layers()[0].head_size);
}

int32_t Machine::relieve(void* machine, uint64_t needed_bytes) {
  auto& self = *static_cast<Machine*>(machine);
  ++self.tally_.pressures;
  if (!self.relieves_ || !self.relief_allowed_) return 0;
  for (size_t index = 0; index < self.lives_.size(); ++index) {
    if (self.lives_[index]->busy) continue;
    self.say("  asked for ", needed_bytes, " bytes: s", self.lives_[index]->name, " is released");
    self.drop(index);
    ++self.relieved_;
    return 1;
  }
  return 0;
}

void Machine::run() {
  open_runtime();
  for (const Operation& operation : program_.operations) {
    perform(operation);
    for (const auto& live : lives_) live->busy = false;
    check_ledger();
  }
  for (uint64_t order = program_.world[5]; !lives_.empty(); order = order * 5 + 3) drop(order % lives_.size());
  const foldkv_runtime_stats stats = runtime_stats();
  expect(stats.used_bytes == 0, stats.used_bytes, " bytes are in use when all sequences are released");
  expect(stats.sequence_count == 0 && stats.spilled_sequences == 0 && stats.spilled_bytes == 0, stats.sequence_count,
         " sequences, ", stats.spilled_bytes, " bytes in files when all sequences are released");
}

void Machine::perform(const Operation& operation) {
  struct Verb {
    int32_t weight;
    void (Machine::*run)(const Operation&);
  };
  static constexpr std::array<Verb, 13> kVerbs = {{{4, &Machine::create},
                                                   {9, &Machine::feed_one},
                                                   {3, &Machine::feed_several},
                                                   {1, &Machine::abandon},
                                                   {3, &Machine::fork},
                                                   {3, &Machine::truncate},
                                                   {2, &Machine::compress},
                                                   {2, &Machine::set_plan},
                                                   {2, &Machine::spill},
                                                   {3, &Machine::save_and_restore},
                                                   {2, &Machine::replace},
                                                   {1, &Machine::release},
                                                   {5, &Machine::call_wrongly}}};
  int32_t place = operation.verb % 40;
  size_t verb = 0;
  while (place >= kVerbs[verb].weight) place -= kVerbs[verb++].weight;
  if (lives_.empty()) verb = 0;
  ++tally_.verbs[verb];
  (this->*kVerbs[verb].run)(operation);
}

Machine::Live& Machine::add(foldkv_sequence* handle, Shadow shadow) {
  lives_.push_back(std::make_unique<Live>(Live{Owned<foldkv_sequence>(handle), std::move(shadow), names_++, true}));
  return *lives_.back();
}

void Machine::drop(size_t index) { lives_.erase(lives_.begin() + static_cast<std::ptrdiff_t>(index)); }

}  // namespace foldkv::test::programs
