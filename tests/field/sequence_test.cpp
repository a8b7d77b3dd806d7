#include <algorithm>

#include "tests/field/field_world.h"

// Field reports, section F, as far as it needs neither truncation nor saving: counts, handles, and free memory in
// pieces.
namespace foldkv::test::field {
namespace {

TEST_CASE("no token is lost between turns, in any number format") {
  const World world(layers_of(2, layer_of(4, 2, 16)));
  const Tokens text = text_of(world.layers(), 82, 1);
  const auto profile = calibrate(world, text_of(world.layers(), 200, 2));
  for (const foldkv_profile* chosen : std::initializer_list<const foldkv_profile*>{nullptr, profile.get()}) {
    for (const int32_t dtype : {FOLDKV_F32, FOLDKV_F16, FOLDKV_BF16}) {
      foldkv_sequence_options options = f32_options();
      options.dtype = dtype;
      options.recent_tokens = 16;
      const auto sequence = make_sequence(world, chosen, options);
      int64_t fed = 0;
      Outputs outputs;
      for (const int64_t count : {50, 10, 20, 1}) {
        if (count == 10) {
          (void)generate(world, sequence.get(), text, fed, count);
        } else {
          outputs = feed(world, {{sequence.get(), &text, fed, count, false, {}}});
        }
        fed += count;
        CHECK(stats_of(sequence.get()).tokens == fed);
        CHECK(stats_of(sequence.get()).next_position == fed);
        CHECK(std::ssize(kept_positions(sequence.get(), 1, 0)) == fed);
      }
      if (chosen != nullptr) continue;  // the loss of four bits is another test's
      for (size_t layer = 0; layer < 2; ++layer) {
        const double limit = dtype == FOLDKV_F32 ? 1e-5 : dtype == FOLDKV_F16 ? 2e-3 : 1.6e-2;
        CHECK(largest_error(outputs.context[layer], true_context(world.layers()[layer], text, layer, 80, 1)) < limit);
      }
    }
  }
}

TEST_CASE("handles that are none, and handles of another world, are errors") {
  const World world({layer_of(2, 1, 16)});
  const World other({layer_of(2, 1, 16)});
  const Tokens text = text_of(world.layers(), 4, 3);
  const auto foreign = make_sequence(other, nullptr);
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  for (foldkv_sequence* handle : {static_cast<foldkv_sequence*>(nullptr), foreign.get()}) {
    CHECK(try_feed(world, {{handle, &text, 0, 4, false, {}}}, &outputs, &error) == FOLDKV_E_ARGUMENT);
    CHECK(std::string(error.argument) == "feeds[0].sequence");
  }
  CHECK(stats_of(foreign.get()).tokens == 0);
  auto stats = sized<foldkv_sequence_stats>();
  foldkv_sequence* fork = nullptr;
  CHECK(foldkv_sequence_get_stats(nullptr, &stats, nullptr) == FOLDKV_E_ARGUMENT);
  CHECK(foldkv_sequence_fork(nullptr, &fork, nullptr) == FOLDKV_E_ARGUMENT);
  CHECK(foldkv_sequence_compress(nullptr, nullptr) == FOLDKV_E_ARGUMENT);
  CHECK(foldkv_step_commit(nullptr, nullptr) == FOLDKV_E_ARGUMENT);
  auto attend = sized<foldkv_attend>();
  CHECK(foldkv_step_attend(nullptr, 0, &attend, nullptr) == FOLDKV_E_ARGUMENT);
}

TEST_CASE("a sequence that is in a step already is busy, not broken") {
  const World world({layer_of(2, 1, 16)});
  const Tokens text = text_of(world.layers(), 8, 4);
  const auto sequence = make_sequence(world, nullptr);
  auto feed_of_one = sized<foldkv_feed>();
  feed_of_one.sequence = sequence.get();
  feed_of_one.token_count = 4;
  foldkv_step* begun = nullptr;
  REQUIRE(foldkv_step_begin(world.runtime(), &feed_of_one, 1, nullptr, &begun, nullptr) == FOLDKV_OK);
  Owned<foldkv_step> step(begun);
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  CHECK(try_feed(world, {{sequence.get(), &text, 0, 4, false, {}}}, &outputs, &error) == FOLDKV_E_STATE);
  CHECK(foldkv_sequence_compress(sequence.get(), nullptr) == FOLDKV_E_STATE);
  step.reset();
  CHECK(error_of_feeding(world, {sequence.get(), &text, 0, 4, false, {}}) < 1e-5);
}

TEST_CASE("free memory in pieces serves a sequence that needs most of it, and nobody else moves") {
  WorldChoice choice;
  choice.budget = 6u << 20;
  const World world(layers_of(2, layer_of(2, 2, 32)), choice);
  const Tokens text = text_of(world.layers(), 12000, 5);
  ProfileChoice eight_bits;
  eight_bits.key_bits = eight_bits.value_bits = 8;
  const auto profile = calibrate(world, text_of(world.layers(), 300, 6), eight_bits);
  std::vector<Owned<foldkv_sequence>> sequences;
  Outputs outputs;
  foldkv_error error = sized<foldkv_error>();
  while (true) {
    sequences.push_back(make_sequence(world, sequences.size() % 2 == 0 ? profile.get() : nullptr));
    if (try_feed(world, {{sequences.back().get(), &text, 0, 200, false, {}}}, &outputs, &error) != FOLDKV_OK) break;
  }
  CHECK(error.status == FOLDKV_E_BUDGET);
  sequences.pop_back();
  REQUIRE(sequences.size() > 8);
  std::vector<std::vector<float>> held;
  for (size_t index = 0; index < sequences.size(); index += 2) {
    sequences[index].reset();
    if (index + 1 < sequences.size()) held.push_back(held_numbers(world, sequences[index + 1].get()));
  }
  // As many tokens as 80% of what is free holds, fed so that a step itself needs little.
  const foldkv_runtime_stats stats = world.stats();
  const uint64_t free_bytes = stats.budget_bytes - stats.used_bytes;
  const auto count = static_cast<int64_t>(free_bytes * 8 / 10 / 1024);
  const auto large = make_sequence(world, nullptr);
  for (int64_t token = 0; token < count; token += 16) {
    REQUIRE_MESSAGE(try_feed(world, {{large.get(), &text, token, 16, true, {}}}, &outputs, &error) == FOLDKV_OK,
                    error.message);
  }
  CHECK(stats_of(large.get()).ledger.exact >= free_bytes * 8 / 10);
  for (size_t index = 1; index < sequences.size(); index += 2) {
    CHECK(held_numbers(world, sequences[index].get()) == held[index / 2]);
  }
}

}  // namespace
}  // namespace foldkv::test::field
