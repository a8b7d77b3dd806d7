#include <algorithm>
#include <set>

#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

foldkv_eviction policy_named(const char* name) {
  auto eviction = sized<foldkv_eviction>();
  REQUIRE(foldkv_policy_find(name, &eviction, nullptr) == FOLDKV_OK);
  CHECK(eviction.struct_size == sizeof(foldkv_eviction));
  return eviction;
}

// SnapKV over a window of eight that keeps so many tokens.
foldkv_eviction small_snapkv(int64_t tokens) {
  foldkv_eviction eviction = policy_named("snapkv");
  eviction.window_tokens = 8;
  eviction.budget_tokens = tokens;
  return eviction;
}

// The sequence of `api` anew, without a profile.
void make_evicting(Api& api, const foldkv_eviction& eviction) {
  auto options = sized<foldkv_sequence_options>();
  options.eviction = &eviction;
  foldkv_sequence_release(api.sequence);
  api.sequence = nullptr;
  REQUIRE(foldkv_sequence_create(api.runtime, api.model, nullptr, &options, &api.sequence, nullptr) == FOLDKV_OK);
}

TEST_CASE("policies are listed by name, and found by it") {
  std::set<std::string> names;
  for (int32_t index = 0; index < foldkv_policy_count(); ++index) {
    auto info = sized<foldkv_policy_info>();
    REQUIRE(foldkv_policy_get(index, &info, nullptr) == FOLDKV_OK);
    CHECK(std::strlen(info.description) > 10);
    names.insert(info.name);
    (void)policy_named(info.name);
  }
  CHECK(std::ssize(names) == foldkv_policy_count());
  for (const char* name : {"full", "streaming-llm", "h2o", "tova", "scissorhands", "snapkv", "pyramidkv", "pyramidinfer",
                           "cake", "dynamickv", "lava", "adakv", "compresskv", "criticalkv", "defensivekv",
                           "expected-attention", "epicache", "ripplekv", "bellowskv-evict", "ripple-bellows"}) {
    CHECK(names.count(name) == 1);
  }
  auto info = sized<foldkv_policy_info>();
  auto eviction = sized<foldkv_eviction>();
  const auto refused = [](const std::string& argument, const auto& call) {
    check_refused(FOLDKV_E_ARGUMENT, argument, call);
  };
  refused("index", [&](foldkv_error* error) { return foldkv_policy_get(-1, &info, error); });
  refused("index", [&](foldkv_error* error) { return foldkv_policy_get(foldkv_policy_count(), &info, error); });
  refused("info", [&](foldkv_error* error) { return foldkv_policy_get(0, nullptr, error); });
  refused("name", [&](foldkv_error* error) { return foldkv_policy_find("snap", &eviction, error); });
  refused("name", [&](foldkv_error* error) { return foldkv_policy_find(nullptr, &eviction, error); });
  refused("eviction", [&](foldkv_error* error) { return foldkv_policy_find("snapkv", nullptr, error); });
}

TEST_CASE("a policy by name says what its authors set") {
  const foldkv_eviction cake = policy_named("cake");
  CHECK(cake.scorer == FOLDKV_SCORER_WINDOW);
  CHECK(cake.row_reduction == FOLDKV_ROWS_MEAN_PLUS_VARIANCE);
  CHECK(cake.gamma == 200.0);
  CHECK(cake.pooling == FOLDKV_POOLING_AVERAGE);
  CHECK(cake.pool_width == 5);
  CHECK(cake.window_tokens == 32);
  CHECK(cake.layer_allocator == FOLDKV_LAYERS_CAKE);
  const foldkv_eviction bellows = policy_named("bellowskv-evict");
  CHECK(bellows.scope == FOLDKV_SCOPE_GROUP);
  CHECK(bellows.pooling == FOLDKV_POOLING_MAXIMUM);
  CHECK(bellows.pool_width == 13);
  CHECK(bellows.sink_tokens == 4);
  CHECK(bellows.window_tokens == 64);
  CHECK(bellows.keep_ratio == 0.5);
  CHECK(bellows.ratio_of_unprotected == 1);
}

TEST_CASE("an evicting sequence tells what each head keeps, and gives bytes back") {
  Api api;
  make_evicting(api, small_snapkv(30));
  api.feed(200, 1);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.tokens == 200);
  CHECK(stats.held_head_tokens == 30 * kLayers * kKvHeads);
  CHECK(stats.fed_head_tokens == 200 * kLayers * kKvHeads);
  CHECK(stats.full_cache_bytes == 200 * stats.full_token_bytes);
  CHECK(stats.ledger.exact == 2 * 2 * 2 * 16 * 2 * kHeadSize * 2);  // two pages of 16 tokens for each head
  std::set<int64_t> any;
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    for (int32_t head = 0; head < kKvHeads; ++head) {
      int64_t count = 0;
      REQUIRE(foldkv_sequence_get_kept_positions(api.sequence, layer, head, nullptr, 0, &count, nullptr) == FOLDKV_OK);
      REQUIRE(count == 30);
      std::vector<int64_t> positions(30);
      REQUIRE(foldkv_sequence_get_kept_positions(api.sequence, layer, head, positions.data(), 30, &count, nullptr) ==
              FOLDKV_OK);
      CHECK(std::is_sorted(positions.begin(), positions.end()));
      CHECK(positions[22] == 192);
      any.insert(positions.begin(), positions.end());
      // Keys of one head alone.
      std::vector<float> rows(30 * kHeadSize);
      const foldkv_tensor output = tensor_of(rows, {30, 1, kHeadSize});
      auto options = sized<foldkv_rebuild_options>();
      options.layer = layer;
      options.one_head = 1;
      options.kv_head = head;
      CHECK(foldkv_sequence_rebuild(api.sequence, &options, &output, nullptr) == FOLDKV_OK);
      CHECK(std::any_of(rows.begin(), rows.end(), [](float number) { return number != 0.0f; }));
    }
  }
  int64_t count = 0;
  REQUIRE(foldkv_sequence_get_positions(api.sequence, nullptr, 0, &count, nullptr) == FOLDKV_OK);
  CHECK(count == std::ssize(any));
  std::vector<float> rows(200 * kKvHeads * kHeadSize);
  const foldkv_tensor output = tensor_of(rows, {30, kKvHeads, kHeadSize});
  auto options = sized<foldkv_rebuild_options>();
  check_refused(FOLDKV_E_STATE, "", [&](foldkv_error* error) {
    return foldkv_sequence_rebuild(api.sequence, &options, &output, error);
  });
  std::vector<int64_t> positions(30);
  const auto refused = [&](const std::string& argument, int32_t layer, int32_t head, int64_t capacity, int64_t* target) {
    check_refused(FOLDKV_E_ARGUMENT, argument, [&](foldkv_error* error) {
      return foldkv_sequence_get_kept_positions(api.sequence, layer, head, positions.data(), capacity, target, error);
    });
  };
  refused("layer", kLayers, 0, 30, &count);
  refused("kv_head", 0, kKvHeads, 30, &count);
  refused("kv_head", 0, -1, 30, &count);
  refused("capacity", 0, 0, 29, &count);
  refused("count", 0, 0, 30, nullptr);
  options.one_head = 2;
  check_refused(FOLDKV_E_ARGUMENT, "options.one_head", [&](foldkv_error* error) {
    return foldkv_sequence_rebuild(api.sequence, &options, &output, error);
  });
}

TEST_CASE("an estimate knows the policy") {
  Api api;
  const foldkv_eviction eviction = small_snapkv(48);
  auto options = sized<foldkv_sequence_options>();
  options.eviction = &eviction;
  auto estimate = sized<foldkv_estimate>();
  REQUIRE(foldkv_sequence_estimate(api.runtime, api.model, nullptr, &options, nullptr, 300, 5, &estimate, nullptr) ==
          FOLDKV_OK);
  make_evicting(api, eviction);
  api.feed(300, 2);
  for (uint32_t token = 0; token < 5; ++token) api.feed(1, 3 + token);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.bytes == estimate.sequence_bytes);
}

TEST_CASE("parts of a policy are checked by name") {
  const Api api;
  foldkv_sequence* sequence = nullptr;
  const auto refused = [&](const std::string& argument, const auto& change) {
    CAPTURE(argument);
    foldkv_eviction eviction = small_snapkv(30);
    change(eviction);
    auto options = sized<foldkv_sequence_options>();
    options.eviction = &eviction;
    check_refused(FOLDKV_E_ARGUMENT, "options.eviction." + argument, [&](foldkv_error* error) {
      return foldkv_sequence_create(api.runtime, api.model, nullptr, &options, &sequence, error);
    });
    CHECK(sequence == nullptr);
  };
  refused("struct_size", [](auto& e) { e.struct_size = 2; });
  refused("scorer", [](auto& e) { e.scorer = 7; });
  refused("row_reduction", [](auto& e) { e.row_reduction = 6; });
  refused("pooling", [](auto& e) { e.pooling = -1; });
  refused("pool_width", [](auto& e) { e.pool_width = 4; });
  refused("pool_after_heads", [](auto& e) { e.pool_after_heads = 2; });
  refused("head_reduction", [](auto& e) { e.head_reduction = 4; });
  refused("weighting", [](auto& e) { e.weighting = 6; });
  refused("scope", [](auto& e) { e.scope = 4; });
  refused("layer_allocator", [](auto& e) { e.layer_allocator = 11; });
  refused("head_allocator", [](auto& e) { e.head_allocator = 4; });
  refused("window_tokens", [](auto& e) { e.window_tokens = 0; });
  refused("window_tokens", [](auto& e) { e.window_tokens = -8; });
  refused("sink_tokens", [](auto& e) { e.sink_tokens = -1; });
  refused("interval", [](auto& e) { e.interval = -1; });
  refused("reindexed", [](auto& e) { e.reindexed = 1, e.head_allocator = FOLDKV_HEAD_BUDGETS_ADA; });
  refused("budget_tokens", [](auto& e) { e.budget_tokens = 7; });
  refused("budget_tokens", [](auto& e) { e.budget_tokens = 0; });
  refused("keep_ratio", [](auto& e) { e.keep_ratio = 0.5; });
  refused("keep_ratio", [](auto& e) { e.keep_ratio = 1.5; });
  refused("keep_ratio", [](auto& e) { e.keep_ratio = std::nan(""); });
  refused("gamma", [](auto& e) { e.gamma = -1.0; });
  refused("first_stage_share", [](auto& e) { e.first_stage_share = 0.5; });
  refused("layer_numbers", [](auto& e) { e.layer_allocator = FOLDKV_LAYERS_CUSTOM; });
  refused("layer_numbers", [](auto& e) { e.layer_allocator = FOLDKV_LAYERS_RIPPLE; });
  refused("layer_number_count", [](auto& e) { e.layer_number_count = 2; });
  refused("layers_per_group", [](auto& e) { e.layers_per_group = -1; });
  refused("pinned_count", [](auto& e) { e.pinned_count = 1; });
  const double numbers[] = {1.0, 2.0, 3.0};
  refused("layer_numbers", [&](auto& e) { e.layer_numbers = numbers, e.layer_number_count = 3; });
  const int32_t layers[] = {0, 2};
  refused("exempt_layers[1]", [&](auto& e) { e.exempt_layers = layers, e.exempt_layer_count = 2; });
  const foldkv_position_range ranges[] = {{0, 4}, {9, 9}};
  refused("pinned[1]", [&](auto& e) { e.pinned = ranges, e.pinned_count = 2; });
  const int32_t heads[] = {0, 1, 2, 4};
  refused("head_ranking[3]", [&](auto& e) {
    e.scope = FOLDKV_SCOPE_LAYER, e.voting_heads = 2, e.head_ranking = heads, e.head_ranking_count = 4;
  });
  refused("head_ranking_count", [&](auto& e) {
    e.scope = FOLDKV_SCOPE_LAYER, e.voting_heads = 2, e.head_ranking = heads, e.head_ranking_count = 3;
  });
}

TEST_CASE("what the host knows is used: weights of layers, exempt layers, pinned tokens, heads that vote") {
  Api api;
  foldkv_eviction eviction = small_snapkv(30);
  const double weights[] = {1.0, 3.0};
  eviction.layer_allocator = FOLDKV_LAYERS_CUSTOM;
  eviction.layer_numbers = weights;
  eviction.layer_number_count = 2;
  const foldkv_position_range pinned = {50, 53};
  eviction.pinned = &pinned;
  eviction.pinned_count = 1;
  const int32_t voting[] = {0, 3};
  eviction.scope = FOLDKV_SCOPE_LAYER;
  eviction.voting_heads = 1;
  eviction.head_ranking = voting;
  eviction.head_ranking_count = 2;
  make_evicting(api, eviction);
  api.feed(200, 4);
  const int64_t expected[] = {15, 45};
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    int64_t count = 0;
    std::vector<int64_t> positions(200);
    REQUIRE(foldkv_sequence_get_kept_positions(api.sequence, layer, 0, positions.data(), 200, &count, nullptr) ==
            FOLDKV_OK);
    CHECK(count == expected[layer]);
    positions.resize(static_cast<size_t>(count));
    for (const int64_t position : {50, 51, 52}) CHECK(std::binary_search(positions.begin(), positions.end(), position));
  }
  foldkv_eviction exempting = small_snapkv(30);
  const int32_t exempt = 1;
  exempting.exempt_layers = &exempt;
  exempting.exempt_layer_count = 1;
  make_evicting(api, exempting);
  api.feed(100, 5);
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(api.sequence, &stats, nullptr) == FOLDKV_OK);
  CHECK(stats.held_head_tokens == kKvHeads * (30 + 100));
}

TEST_CASE("tokens are apportioned exactly") {
  const double weights[] = {0.8494600933046685, 1.2741901399465445, 0.8996947447529153, 0.9766550219958714};
  const int64_t lower[] = {0, 0, 0, 0};
  const int64_t upper[] = {300, 300, 300, 300};
  int64_t tokens[4] = {};
  REQUIRE(foldkv_budget_apportion(weights, lower, upper, 4, 1000, tokens, nullptr) == FOLDKV_OK);
  CHECK(std::vector<int64_t>(tokens, tokens + 4) == std::vector<int64_t>{218, 300, 231, 251});
  REQUIRE(foldkv_budget_apportion(nullptr, nullptr, nullptr, 0, 1000, nullptr, nullptr) == FOLDKV_OK);
  const auto refused = [&](const std::string& argument, const auto& call) {
    check_refused(FOLDKV_E_ARGUMENT, argument, call);
  };
  refused("count", [&](foldkv_error* error) {
    return foldkv_budget_apportion(weights, lower, upper, -1, 10, tokens, error);
  });
  refused("weights", [&](foldkv_error* error) {
    return foldkv_budget_apportion(nullptr, lower, upper, 4, 10, tokens, error);
  });
  refused("upper[0]", [&](foldkv_error* error) {
    return foldkv_budget_apportion(weights, upper, lower, 4, 10, tokens, error);
  });
  refused("tokens", [&](foldkv_error* error) {
    return foldkv_budget_apportion(weights, lower, upper, 4, 10, nullptr, error);
  });
}

}  // namespace
}  // namespace foldkv::test
