#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

TEST_CASE("the only plan of a profile is chosen, with all tokens or with those that fit") {
  const Api api;
  auto wish = sized<foldkv_plan_wish>();
  wish.tokens = 500;
  auto choice = sized<foldkv_plan_choice>();
  REQUIRE(foldkv_profile_choose_plan(api.runtime, api.model, api.profile, &wish, &choice, nullptr) == FOLDKV_OK);
  CHECK(choice.plan == 0);
  CHECK(std::string(choice.name) == "default");
  CHECK(choice.tokens_kept == 500);
  CHECK(choice.keep_ratio == 1.0);
  CHECK(choice.bytes_per_token == 20);
  CHECK(choice.budget_bytes == 0);
  auto estimate = sized<foldkv_estimate>();
  REQUIRE(foldkv_sequence_estimate(api.runtime, api.model, api.profile, nullptr, nullptr, 500, 0, &estimate, nullptr) ==
          FOLDKV_OK);
  CHECK(choice.sequence_bytes == estimate.sequence_bytes);
  CHECK(choice.shared_bytes == estimate.shared_bytes);
  CHECK(choice.total_bytes == estimate.shared_bytes + estimate.peak_bytes);
  CHECK(std::string(choice.explanation).find("1 sequence of 500 + 0 tokens") != std::string::npos);

  wish.budget_bytes = choice.total_bytes - 1;
  REQUIRE(foldkv_profile_choose_plan(api.runtime, api.model, api.profile, &wish, &choice, nullptr) == FOLDKV_OK);
  CHECK(choice.tokens_kept < 500);
  CHECK(choice.keep_ratio < 1.0);
  CHECK(choice.total_bytes <= wish.budget_bytes);
  CHECK(choice.budget_bytes == wish.budget_bytes);
}

TEST_CASE("wishes are checked") {
  const Api api;
  auto choice = sized<foldkv_plan_choice>();
  const auto refused = [&](foldkv_status status, const std::string& argument, const auto& change) {
    auto wish = sized<foldkv_plan_wish>();
    wish.tokens = 100;
    wish.budget_bytes = 1 << 20;
    change(wish);
    check_refused(status, argument, [&](foldkv_error* error) {
      return foldkv_profile_choose_plan(api.runtime, api.model, api.profile, &wish, &choice, error);
    });
  };
  const auto wrong = [&](const std::string& argument, const auto& change) {
    refused(FOLDKV_E_ARGUMENT, argument, change);
  };
  wrong("wish.reserved", [](auto& wish) { wish.reserved = 1; });
  wrong("wish.budget_bytes", [](auto& wish) { wish.budget_bytes = UINT64_MAX; });
  wrong("wish.tokens", [](auto& wish) { wish.tokens = 0; });
  wrong("wish.tokens", [](auto& wish) { wish.tokens = int64_t{1} << 31; });
  wrong("wish.sequences", [](auto& wish) { wish.sequences = -1; });
  wrong("wish.generated_tokens", [](auto& wish) { wish.generated_tokens = -1; });
  wrong("wish.bytes_per_token", [](auto& wish) { wish.bytes_per_token = -1.0; });
  wrong("wish.bytes_per_token", [](auto& wish) { wish.bytes_per_token = 1.0; });  // 20 is the least there is
  wrong("wish.ratio", [](auto& wish) { wish.ratio = 0.5; });
  wrong("wish.ratio", [](auto& wish) { wish.ratio = 1000.0; });
  wrong("wish.highest_cost", [](auto& wish) { wish.highest_cost = NAN; });
  wrong("wish.highest_cost", [](auto& wish) { wish.highest_cost = 1e-12; });
  wrong("wish.highest_divergence", [](auto& wish) { wish.highest_divergence = -1.0; });
  wrong("wish.lowest_keep_ratio", [](auto& wish) { wish.lowest_keep_ratio = -0.1; });
  wrong("wish.lowest_keep_ratio", [](auto& wish) { wish.lowest_keep_ratio = 1.1; });
  wrong("wish.highest_divergence", [](auto& wish) { wish.highest_divergence = 0.5; });  // nothing was measured
  refused(FOLDKV_E_BUDGET, "wish.budget_bytes", [](auto& wish) { wish.budget_bytes = 10; });
  auto sequence = sized<foldkv_sequence_options>();
  sequence.plan = "default";
  wrong("wish.sequence_options.plan", [&](auto& wish) { wish.sequence_options = &sequence; });
  sequence.plan = "none such";
  wrong("wish.sequence_options.plan", [&](auto& wish) { wish.sequence_options = &sequence; });
  sequence.plan = nullptr;
  sequence.sink_tokens = -7;
  wrong("wish.sequence_options.sink_tokens", [&](auto& wish) { wish.sequence_options = &sequence; });
  auto step = sized<foldkv_step_options>();
  step.input = 9;
  wrong("wish.step_options.input", [&](auto& wish) { wish.step_options = &step; });

  auto wish = sized<foldkv_plan_wish>();
  const auto with = [&](const foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile,
                        const foldkv_plan_wish* asked, foldkv_plan_choice* out, const std::string& argument) {
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_profile_choose_plan(runtime, model, profile, asked, out, error);
    });
  };
  with(nullptr, api.model, api.profile, &wish, &choice, "runtime");
  with(api.runtime, nullptr, api.profile, &wish, &choice, "model");
  with(api.runtime, api.model, nullptr, &wish, &choice, "profile");
  with(api.runtime, api.model, api.profile, nullptr, &choice, "wish");
  with(api.runtime, api.model, api.profile, &wish, nullptr, "choice");
}

}  // namespace
}  // namespace foldkv::test
