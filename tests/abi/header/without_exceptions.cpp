// A C++ host built with -fno-exceptions -fno-rtti uses both headers.
#include "foldkv/foldkv.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this file must be compiled with -fno-exceptions -fno-rtti"
#endif

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__)

// Handles are move-only, and moving empties the source.
static_assert(!std::is_copy_constructible_v<foldkv::Runtime> && !std::is_copy_assignable_v<foldkv::Sequence>);
static_assert(std::is_nothrow_move_constructible_v<foldkv::Step> && std::is_nothrow_move_assignable_v<foldkv::Model>);

foldkv::Result<foldkv::Model> make_model() {
  const double frequencies[2] = {1.0, 0.01};
  auto rotation = foldkv::init<foldkv_rotation>();
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = 2;
  auto layer = foldkv::init<foldkv_layer>();
  layer.query_heads = 2;
  layer.kv_heads = 1;
  layer.head_size = 4;
  layer.rotation = &rotation;
  return foldkv::Model::create({.layer_count = 1, .layers = &layer});
}

void a_step_runs_and_rolls_back() {
  auto runtime = foldkv::Runtime::create({.budget_bytes = 8u << 20, .threads = 1});
  auto model = make_model();
  EXPECT(runtime.ok());
  EXPECT(model.ok());
  if (!runtime || !model) return;
  auto sequence = foldkv::Sequence::create(*runtime, *model, nullptr);
  EXPECT(sequence.ok());
  if (!sequence) return;

  std::vector<float> query(3 * 2 * 4, 0.5f), key(3 * 4, 0.25f), value(3 * 4, 2.0f), output(3 * 2 * 4);
  auto attend = foldkv::init<foldkv_attend>();
  attend.query = foldkv::tensor(query.data(), {3, 2, 4});
  attend.key = foldkv::tensor(key.data(), {3, 1, 4});
  attend.value = foldkv::tensor(value.data(), {3, 1, 4});
  attend.output = foldkv::tensor(output.data(), {3, 2, 4});
  const foldkv_feed feeds[] = {foldkv::feed(*sequence, 3)};
  for (const bool commit : {false, true}) {
    auto step = foldkv::Step::begin(*runtime, feeds);
    EXPECT(step.ok());
    if (!step) return;
    EXPECT(step->attend(0, attend).ok());
    if (commit) EXPECT(step->commit().ok());
  }
  // All values are 2, so every weighted mean of them is. One commit, one roll-back: three tokens.
  for (const float number : output) EXPECT(number > 1.999f && number < 2.001f);
  const auto stats = sequence->stats();
  EXPECT(stats.ok() && stats->tokens == 3);
  const auto positions = sequence->positions();
  EXPECT(positions.ok() && *positions == std::vector<int64_t>{0, 1, 2});

  auto fork = sequence->fork();
  EXPECT(fork.ok());
  if (!fork) return;
  EXPECT(fork->replace({.layer = 0, .side = FOLDKV_VALUES}, foldkv::tensor(key.data(), {3, 1, 4})).ok());
  EXPECT(fork->perturb({.layer = 0, .scale = 0.5, .first_token = 1, .token_count = 1}).ok());
  std::vector<float> held(3 * 4);
  EXPECT(fork->rebuild({.layer = 0, .side = FOLDKV_VALUES}, foldkv::tensor(held.data(), {3, 1, 4})).ok());
  EXPECT(held[0] == 0.25f && held[4] != 0.25f && held[8] == 0.25f);
  EXPECT(sequence->rebuild({.layer = 0, .side = FOLDKV_VALUES}, foldkv::tensor(held.data(), {3, 1, 4})).ok());
  EXPECT(held[0] == 2.0f && held[4] == 2.0f);

  foldkv::Sequence moved = std::move(*sequence);
  EXPECT(moved.get() != nullptr && sequence->get() == nullptr);
}

void sensitivities_add_up() {
  auto model = make_model();
  if (!model) return;
  auto sums = foldkv::Sensitivity::create(*model);
  EXPECT(sums.ok());
  if (!sums) return;
  const float even[2] = {0.0f, 0.0f};
  const float uneven[2] = {0.0f, 1.0f};
  EXPECT(sums->add(0, FOLDKV_VALUES, foldkv::tensor(even, {1, 2}), foldkv::tensor(uneven, {1, 2})).ok());
  const auto figures = sums->of(0, FOLDKV_VALUES);
  EXPECT(figures.ok() && figures->examples == 1 && figures->divergence > 0.12 && figures->divergence < 0.1202);
}

void failures_carry_their_words() {
  const auto runtime = foldkv::Runtime::create({});
  EXPECT(!runtime.ok() && runtime.status() == FOLDKV_E_ARGUMENT);
  EXPECT(std::strstr(runtime.error().argument, "budget_bytes") != nullptr);
  const std::vector<std::byte> no_profile(100);
  const auto profile = foldkv::Profile::load(no_profile);
  EXPECT(!profile.ok() && profile.error().message[0] != '\0');
}

}  // namespace

int main() {
  a_step_runs_and_rolls_back();
  sensitivities_add_up();
  failures_carry_their_words();
  return failures == 0 ? 0 : 1;
}
