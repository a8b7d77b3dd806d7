#include <string>

#include "doctest/doctest.h"
#include "tests/programs/shrink.h"

namespace foldkv::test::programs {
namespace {

// Set to the number that a failure names, to run that program alone.
constexpr uint64_t kFirst = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr uint64_t kPrograms = 400;
#else
constexpr uint64_t kPrograms = 10000;
#endif

TEST_CASE("random programs of calls do what a cache that forgets nothing does") {
  Tally tally;
  for (uint64_t seed = kFirst; seed < kFirst + kPrograms; ++seed) {
    const Program program = random_program(seed);
    const std::string failure = failure_of(program, tally, nullptr);
    if (failure.empty()) continue;
    Tally ignored;
    std::string text;
    const std::string shrunk = failure_of(shrink(program), ignored, &text);
    FAIL("program ", seed, ": ", failure, "\nshrunk:\n", text, "\n", shrunk);
  }
  // Programs that never do a thing would find nothing wrong with it.
  for (size_t verb = 0; verb < 13; ++verb) CHECK_MESSAGE(tally.verbs[verb] > 0, "verb ", verb);
  for (size_t recipe = 0; recipe < tally.recipes.size(); ++recipe) {
    CHECK_MESSAGE(tally.recipes[recipe] > 0, name_of(static_cast<Recipe>(recipe)));
  }
  for (const foldkv_status status : {FOLDKV_OK, FOLDKV_E_ARGUMENT, FOLDKV_E_BUDGET, FOLDKV_E_STATE, FOLDKV_E_CORRUPT,
                                     FOLDKV_E_FILE, FOLDKV_E_CANCELLED}) {
    CHECK_MESSAGE(tally.statuses[static_cast<size_t>(status)] > 0, foldkv_status_name(status));
  }
  CHECK(tally.latents > 0);
  CHECK(tally.evicted_tokens > 0);
  CHECK(tally.pressures > 0);
}

}  // namespace
}  // namespace foldkv::test::programs
