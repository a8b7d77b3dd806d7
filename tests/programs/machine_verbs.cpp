#include <algorithm>

#include "tests/programs/machine.h"
#include "tests/programs/mismatch.h"

namespace foldkv::test::programs {
namespace {

constexpr size_t kMostSequences = 6;

// Policies that need nothing but attention; Recipe and policy are chosen apart.
constexpr std::array<const char*, 13> kPolicies = {
    "streaming-llm", "h2o",   "tova", "scissorhands", "snapkv", "pyramidkv", "pyramidinfer",
    "cake",          "lava",  "adakv", "dynamickv",   "expected-attention", "bellowskv-evict"};

struct Wish {
  foldkv_sequence_options options = sized<foldkv_sequence_options>();
  foldkv_eviction eviction = sized<foldkv_eviction>();
  Terms terms;
  std::string words;
};

// What the library reads as default is written as 0, as hosts do.
int32_t or_default(int64_t number, int64_t usual) {
  if (number == 0) return -1;
  return number == usual ? 0 : static_cast<int32_t>(number);
}

void choose_numbers(const Operation& operation, Wish& wish) {
  constexpr std::array<int64_t, 4> kSinks = {4, 0, 2, 4};
  constexpr std::array<int64_t, 4> kRecent = {4, 8, 0, 16};
  constexpr std::array<int64_t, 4> kFolds = {4, 8, 64, 0};
  wish.terms.dtype = std::array{FOLDKV_F32, FOLDKV_F16, FOLDKV_BF16}[operation.choices[1] % 3];
  wish.terms.sinks = kSinks[operation.choices[1] / 3 % 4];
  wish.terms.recent = kRecent[operation.choices[1] / 12 % 4];
  const int64_t fold = kFolds[operation.choices[1] / 48 % 4];
  wish.terms.fold = fold == 0 ? std::nullopt : std::optional(fold);
  wish.options.dtype = wish.terms.dtype;
  wish.options.sink_tokens = or_default(wish.terms.sinks, 4);
  wish.options.recent_tokens = or_default(wish.terms.recent, 64);
  wish.options.fold_tokens = or_default(fold, 64);
}

void choose_policy(const Operation& operation, Wish& wish) {
  const char* const name = kPolicies[operation.choices[3] % kPolicies.size()];
  expect(foldkv_policy_find(name, &wish.eviction, nullptr) == FOLDKV_OK, "no policy ", name);
  if (wish.eviction.window_tokens > 4) wish.eviction.window_tokens = 4;
  if (wish.eviction.recent_tokens > 4) wish.eviction.recent_tokens = 4;
  if (wish.eviction.floor_tokens > 4) wish.eviction.floor_tokens = 4;
  wish.eviction.keep_ratio = 0.0;
  wish.eviction.budget_tokens = 12 + operation.choices[3] / 16;
  wish.eviction.ratio_of_unprotected = 0;
  if (operation.choices[2] % 2 == 0 && wish.eviction.interval == 0) wish.eviction.interval = 4;
  // In generation latents are neither weighed nor looked at by a forecast.
  const bool looks = wish.eviction.weighting > FOLDKV_WEIGHTING_NONE || wish.eviction.scorer == FOLDKV_SCORER_EXPECTED_ATTENTION;
  if (looks && wish.terms.recipe != Recipe::kExact) wish.eviction.interval = 0;
  wish.options.eviction = &wish.eviction;
  wish.terms.evicts = true;
  absl::StrAppend(&wish.words, ", ", name, " with ", wish.eviction.budget_tokens, " tokens");
}

}  // namespace

void Machine::create(const Operation& operation) {
  if (lives_.size() >= kMostSequences) return feed_one(operation);
  Wish wish;
  choose_numbers(operation, wish);
  wish.terms.recipe = static_cast<Recipe>(operation.choices[0] % kRecipeCount);
  // The sharing of scales or directions among tokens and eviction exclude one another.
  const bool evicts = operation.choices[0] / kRecipeCount % 4 == 0;
  if (evicts) wish.terms.recipe = std::array{Recipe::kExact, Recipe::kInteger8, Recipe::kPlans}[operation.choices[2] % 3];
  if (stage_.profile(wish.terms.recipe) == nullptr) wish.terms.recipe = Recipe::kExact;
  wish.words = name_of(wish.terms.recipe);
  if (evicts) choose_policy(operation, wish);
  if (wish.terms.recipe == Recipe::kPlans) {
    wish.options.plan = stage_.plans()[operation.choices[2] / 3 % stage_.plans().size()].c_str();
    absl::StrAppend(&wish.words, ", plan ", wish.options.plan);
  }
  say("create s", names_, ": ", wish.words, ", format ", wish.terms.dtype, ", ", wish.terms.sinks, " sinks, ",
      wish.terms.recent, " recent, folds ", wish.terms.fold.value_or(-1));
  const Ledgers before = ledgers();
  const Relief relief(*this);
  foldkv_sequence* made = nullptr;
  foldkv_error error = sized<foldkv_error>();
  const foldkv_status status = foldkv_sequence_create(runtime_.get(), stage_.model(), stage_.profile(wish.terms.recipe),
                                                      &wish.options, &made, &error);
  if (!succeeded(status, error, before)) return;
  ++tally_.recipes[static_cast<size_t>(wish.terms.recipe)];
  check(add(made, Shadow(stage_, wish.terms)));
}

void Machine::fork(const Operation& operation) {
  Live& live = pick(operation);
  if (lives_.size() >= kMostSequences) return feed_one(operation);
  say("fork s", live.name, " to s", names_);
  const Ledgers before = ledgers();
  const bool was_spilled = stats_of(live).spilled != 0;  // it comes back to be forked
  foldkv_sequence* made = nullptr;
  foldkv_error error = sized<foldkv_error>();
  const foldkv_status status = foldkv_sequence_fork(live.handle.get(), &made, &error);
  if (!succeeded(status, error, before)) return;
  Live& other = add(made, live.shadow);
  if (!was_spilled) {
    expect(runtime_stats().used_bytes == before.runtime.used_bytes, "a fork has taken memory");
  }
  check(other);
  check(live);
  if (operation.choices[0] % 2 == 0) feed_twins(live, other, operation);
}

void Machine::truncate(const Operation& operation) {
  Live& live = pick(operation);
  live.busy = true;
  const int64_t lowest = stats_of(live).lowest_truncation;
  const int64_t next = live.shadow.next_position();
  // As a rule a few tokens; now and then to anywhere.
  int64_t position = std::max<int64_t>(0, next - operation.choices[1] % 6);
  if (operation.choices[0] % 2 == 0) position = next * operation.choices[1] / 255;
  say("truncate s", live.name, " to ", position);
  const Ledgers before = ledgers();
  foldkv_error error = sized<foldkv_error>();
  const foldkv_status status = foldkv_sequence_truncate(live.handle.get(), position, &error);
  if (position < lowest) return check_refused(status, FOLDKV_E_STATE, before);
  if (!succeeded(status, error, before)) return;
  live.shadow.truncate(position);
  check(live);
}

void Machine::compress(const Operation& operation) {
  Live& live = pick(operation);
  live.busy = true;
  say("compress s", live.name);
  const Ledgers before = ledgers();
  const Relief relief(*this);
  foldkv_error error = sized<foldkv_error>();
  if (!succeeded(foldkv_sequence_compress(live.handle.get(), &error), error, before)) return;
  live.shadow.compress();
  check(live);
}

void Machine::set_plan(const Operation& operation) {
  Live& live = pick(operation);
  live.busy = true;
  const std::vector<std::string>& plans = stage_.plans();
  const std::string& plan = plans[operation.choices[0] % plans.size()];
  const bool has_plans = live.shadow.terms().recipe == Recipe::kPlans;
  say("plan of s", live.name, ": ", plan);
  const Ledgers before = ledgers();
  const Relief relief(*this);
  foldkv_error error = sized<foldkv_error>();
  const foldkv_status status = foldkv_sequence_set_plan(live.handle.get(), plan.c_str(), &error);
  if (!has_plans) {
    expect(status != FOLDKV_OK, "s", live.name, " has taken a plan that its profile does not have");
    return check_unchanged(before);
  }
  if (!succeeded(status, error, before)) return;
  check(live, true);
  expect(stats_of(live).plan == static_cast<int32_t>(operation.choices[0] % plans.size()), "the plan is another");
}

void Machine::spill(const Operation& operation) {
  Live& live = pick(operation);
  say("spill s", live.name);
  const Ledgers before = ledgers();
  foldkv_error error = sized<foldkv_error>();
  if (!succeeded(foldkv_sequence_spill(live.handle.get(), &error), error, before)) return;
  expect(stats_of(live).spilled == 1, "s", live.name, " was spilled, and is not");
  check_stats(live);
}

void Machine::replace(const Operation& operation) {
  Live& live = pick(operation);
  live.busy = true;
  Shadow& shadow = live.shadow;
  const auto tokens = static_cast<int64_t>(shadow.tokens().size());
  const bool shares_layers = shadow.terms().recipe == Recipe::kKvSharer;
  if (tokens == 0 || shadow.terms().evicts || shares_layers) return feed_one(operation);
  auto options = sized<foldkv_replace_options>();
  options.layer = operation.choices[0] % stage_.layer_count();
  options.side = operation.choices[0] / 8 % 2;
  options.first_token = operation.choices[1] % tokens;
  const int64_t count = std::min<int64_t>(1 + operation.choices[2] % 6, tokens - options.first_token);
  std::vector<float> rows;
  for (int64_t i = 0; i < count * stage_.key_width(); ++i) {
    rows.push_back(static_cast<float>((i * 37 + operation.choices[3]) % 101) / 50.0F - 1.0F);
  }
  const LayerShape& shape = stage_.layers()[static_cast<size_t>(options.layer)];
  const foldkv_tensor tensor{rows.data(), FOLDKV_F32, FOLDKV_HOST, 3, 0, {count, shape.kv_heads, shape.head_size, 0}, {}};
  say("replace ", count, " rows of s", live.name, " from ", options.first_token, ", layer ", options.layer, ", side ",
      options.side);
  bool latent = false;
  for (int64_t i = 0; i < count; ++i) {
    latent = latent || (stage_.grouped(shadow.terms().recipe, options.layer) && shadow.is_latent(options.first_token + i));
  }
  const Ledgers before = ledgers();
  foldkv_error error = sized<foldkv_error>();
  const foldkv_status status = foldkv_sequence_replace(live.handle.get(), &options, &tensor, &error);
  if (latent) return check_refused(status, FOLDKV_E_STATE, before);
  if (!succeeded(status, error, before)) return;
  for (int64_t i = 0; i < count; ++i) {
    shadow.replace(options.first_token + i, options.layer, options.side, rows.data() + i * stage_.key_width());
  }
  check(live);
}

void Machine::release(const Operation& operation) {
  say("release s", pick(operation).name);
  drop(operation.which % lives_.size());
  for (const auto& live : lives_) {
    if (stats_of(*live).spilled == 0) check(*live);
  }
}

}  // namespace foldkv::test::programs
