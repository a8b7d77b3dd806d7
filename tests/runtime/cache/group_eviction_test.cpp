#include <algorithm>

#include "tests/runtime/cache/eviction_scene.h"

// Eviction in layers whose tokens become latents: one decision for each layer group.
namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 200;
constexpr int64_t kBudget = 110;

ToyShape group_shape() {
  ToyShape shape;
  shape.layers = 5;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_size = 8;
  shape.hidden = 24;
  return shape;
}

// Two groups of two layers; the last layer is in none.
std::shared_ptr<const Profile> group_profile(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                                             int64_t exact_layers = 1) {
  ProfileChoice choice;
  choice.layers_per_group = 2;
  choice.bits = 8;
  choice.correction_rank = 2;
  choice.exact_layers = exact_layers;
  return calibrate(runtime, host, choice);
}

SequencePolicy group_policy(const std::string& name, int64_t budget, int64_t interval) {
  EvictionPolicy policy = small_policy(name, budget, 5);
  policy.selection.interval = interval;
  SequencePolicy result = evicting(std::move(policy));
  result.recent_tokens = 16;
  result.fold_tokens = 16;
  return result;
}

std::vector<std::string> group_policies() {
  return {"bellowskv-evict", "ripple-bellows", "snapkv", "h2o", "tova", "streaming-llm", "cake", "adakv", "scissorhands"};
}

// Rows of a layer as the sequence holds them, in the places of their positions; the others as the host gave them.
std::vector<float> as_held(const Sequence& sequence, int64_t layer, backend::Side side, std::vector<float> rows) {
  const int64_t size = sequence.model().layer(layer).head_size;
  const int64_t width = sequence.model().layer(layer).key_width();
  for (int64_t head = 0; head < sequence.model().layer(layer).kv_heads; ++head) {
    const auto positions = sequence.positions(layer, head);
    REQUIRE(positions.ok());
    std::vector<float> held(positions->size() * static_cast<size_t>(size));
    const MutableTensorView view{reinterpret_cast<std::byte*>(held.data()), NumberFormat::kF32,
                                 std::ssize(*positions), size, size};
    REQUIRE(sequence.rebuild({layer, side, false, 0, std::ssize(*positions), head}, view).ok());
    for (size_t token = 0; token < positions->size(); ++token) {
      std::copy_n(held.begin() + static_cast<int64_t>(token) * size, size,
                  rows.begin() + (*positions)[token] * width + head * size);
    }
  }
  return rows;
}

double decode_error(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                    const std::shared_ptr<Sequence>& sequence, const ToyTokens& tokens, int64_t token) {
  const std::vector<KeptByHead> kept = kept_everywhere(*sequence);
  std::vector<std::vector<double>> expected;
  for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
    const auto index = static_cast<size_t>(layer);
    expected.push_back(oracle_attention(host, layer, tokens.query[index],
                                        as_held(*sequence, layer, backend::Side::kKeys, tokens.key[index]),
                                        as_held(*sequence, layer, backend::Side::kValues, tokens.value[index]), token,
                                        1, kept[index]));
  }
  const LayerOutputs outputs = run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
  double error = 0.0;
  for (size_t layer = 0; layer < expected.size(); ++layer) {
    error = std::max(error, relative_error(outputs[layer], expected[layer]));
  }
  return error;
}

TEST_CASE("a group's layers keep the same tokens, as many as its budget, some of them as latents") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(kPrompt + 1, 21);
  for (const std::string& backend : backend_names()) {
    const auto runtime = open_runtime({backend});
    const auto profile = group_profile(runtime, host);
    for (const std::string& name : group_policies()) {
      CAPTURE(name);
      const auto sequence = make_sequence(runtime, host, profile, group_policy(name, kBudget, 0));
      (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
      const std::vector<KeptByHead> kept = kept_everywhere(*sequence);
      int64_t sum = 0;
      for (size_t layer = 0; layer < 5; ++layer) {
        sum += std::ssize(kept[layer][0]) + std::ssize(kept[layer][1]);
        if (layer < 4) {
          CHECK(kept[layer][0] == kept[layer / 2 * 2][0]);
          CHECK(kept[layer][1] == kept[layer][0]);
          // Sinks and recent tokens stay exact; a run of latents lies between them.
          CHECK(sequence->storage().set_of(static_cast<int64_t>(layer)).token_count == 20);
          CHECK(sequence->storage().latent_tokens(static_cast<int64_t>(layer / 2)) == std::ssize(kept[layer][0]) - 20);
          CHECK(std::equal(kept[layer][0].begin(), kept[layer][0].begin() + 4, std::vector<int32_t>{0, 1, 2, 3}.begin()));
          CHECK(kept[layer][0][kept[layer][0].size() - 16] == kPrompt - 16);
        }
        CHECK(std::is_sorted(kept[layer][0].begin(), kept[layer][0].end()));
      }
      // Of the layer in no group each head may hold another number.
      CHECK(sum <= 10 * kBudget);
      CHECK(sum > 10 * kBudget - 10);
      CHECK(decode_error(runtime, host, sequence, tokens, kPrompt) < 2e-5);
      const int64_t held = runtime->arena().stats().ledger.of(Role::kLatent);
      CHECK(sequence->ledger().of(Role::kLatent) == held);
    }
  }
}

TEST_CASE("budgets of groups sum exactly, and never fall below what stays exact") {
  ToyShape shape = group_shape();
  shape.layers = 6;
  const ToyHost host(shape);
  const ToyTokens tokens = host.tokens(kPrompt, 31);
  const auto runtime = open_runtime({});
  const auto profile = group_profile(runtime, host, 0);
  for (const std::string name : {"ripple-bellows", "pyramidkv", "cake", "epicache", "dynamickv", "compresskv"}) {
    CAPTURE(name);
    for (const int64_t budget : {24, 31, 50, 77}) {
      CAPTURE(budget);
      SequencePolicy policy = group_policy(name, budget, 0);
      auto eviction = std::make_shared<SequenceEviction>(*policy.eviction);
      if (!eviction->policy.budget.layer_numbers.empty()) eviction->policy.budget.layer_numbers = numbers_of_layers(6);
      policy.eviction = std::move(eviction);
      const auto sequence = make_sequence(runtime, host, profile, policy);
      (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
      int64_t sum = 0;
      for (int64_t layer = 0; layer < 6; layer += 2) {
        CHECK(sequence->held_tokens(layer, 0) >= 20);
        sum += sequence->held_tokens(layer, 0);
      }
      CHECK(sum == 3 * budget);
    }
  }
}

TEST_CASE("in generation latents are evicted where the next run becomes latents") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(420, 22);
  const auto runtime = open_runtime({});
  const auto profile = group_profile(runtime, host);
  for (const std::string& name : group_policies()) {
    CAPTURE(name);
    const auto sequence = make_sequence(runtime, host, profile, group_policy(name, 60, 1));
    (void)run_step(runtime, host, {{sequence, &tokens, 0, 80, false, {}}});
    int64_t most = 0;
    for (int64_t token = 80; token < 200; ++token) {
      CHECK(decode_error(runtime, host, sequence, tokens, token) < 2e-5);
      for (int64_t layer = 0; layer < 5; ++layer) most = std::max(most, sequence->held_tokens(layer, 0));
    }
    // Exact tokens wait for a run of 16 before anything is cut.
    CHECK(most <= (name == "ripple-bellows" || name == "cake" ? 100 : 60 + 16));
    CHECK(sequence->storage().latent_tokens() > 0);
  }
}

TEST_CASE("the same lives on two threads, in chunks and as a fork") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(300, 23);
  const auto profile = group_profile(open_runtime({}), host);
  for (const std::string name : {"bellowskv-evict", "h2o", "cake"}) {
    CAPTURE(name);
    struct Life {
      std::vector<KeptByHead> kept;
      LayerOutputs last;
    };
    const auto live = [&](int32_t threads, int64_t chunk, bool forks) {
      const auto runtime = open_runtime({"cpu", threads});
      auto sequence = make_sequence(runtime, host, profile, group_policy(name, 60, 1));
      (void)feed_in_chunks(runtime, host, sequence, tokens, 0, 120, chunk);
      Life life;
      for (int64_t token = 120; token < 200; ++token) {
        if (forks && token == 150) {
          auto fork = sequence->fork();
          REQUIRE(fork.ok());
          sequence = *fork;
        }
        life.last = run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
      }
      life.kept = kept_everywhere(*sequence);
      return life;
    };
    const Life whole = live(1, 120, false);
    for (const Life& other : {live(2, 120, false), live(1, 7, false), live(1, 120, true)}) {
      CHECK(other.kept == whole.kept);
      CHECK(other.last == whole.last);
    }
  }
}

TEST_CASE("a fork between the pieces of a prompt goes on like the original") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(150, 24);
  for (const std::string name : {"snapkv", "h2o", "expected-attention"}) {
    CAPTURE(name);
    const auto runtime = open_runtime({});
    EvictionPolicy policy = small_policy(name, 40, 5);
    const auto original = make_sequence(runtime, host, nullptr, evicting(policy));
    (void)run_step(runtime, host, {{original, &tokens, 0, 90, true, {}}});
    const auto fork = original->fork();
    REQUIRE(fork.ok());
    CHECK((*fork)->ledger().total() == original->ledger().total());
    for (const auto& sequence : {original, *fork}) {
      (void)run_step(runtime, host, {{sequence, &tokens, 90, 60, false, {}}});
    }
    CHECK(kept_everywhere(**fork) == kept_everywhere(*original));
    CHECK(runtime->arena().stats().ledger.total() ==
          runtime->arena().stats().ledger.of(Role::kModel) + 2 * original->ledger().total());
  }
}

TEST_CASE("an endless stream keeps memory flat") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(1500, 25);
  const auto profile = group_profile(open_runtime({}), host, 0);
  for (const std::string name : {"streaming-llm", "streaming-llm-reindexed", "h2o", "tova", "bellowskv-evict"}) {
    for (const bool grouped : {false, true}) {
      CAPTURE(name);
      CAPTURE(grouped);
      const auto runtime = open_runtime({});
      const auto sequence = make_sequence(runtime, host, grouped ? profile : nullptr, group_policy(name, 60, 1));
      const bool reindexed = sequence->policy().eviction->policy.selection.reindexed;
      int64_t most_early = 0;
      int64_t most_late = 0;
      for (int64_t token = 0; token < 1500; ++token) {
        (void)run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
        int64_t& most = token < 300 ? most_early : most_late;
        most = std::max(most, sequence->ledger().total());
        CHECK(sequence->held_tokens(0, 0) <= 60 + 16);
        if (reindexed) CHECK(sequence->next_position() == sequence->held_tokens(0, 0));
      }
      CHECK(most_late <= most_early);
      CHECK(sequence->storage().token_count() == 1500);
    }
  }
}

TEST_CASE("numbered anew, kept tokens stand at their places in the cache") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(60, 26);
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr, evicting(small_policy("streaming-llm-reindexed", 12, 5)));
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 50, false, {}}});
  CHECK(sequence->next_position() == 12);
  CHECK(kept_by_head(*sequence, 1)[0] == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const LayerOutputs outputs = run_step(runtime, host, {{sequence, &tokens, 50, 1, false, {}}});
  for (size_t layer = 0; layer < 5; ++layer) {
    // The tokens that are left, as if they were the text.
    const auto compact = [&](const std::vector<float>& rows) {
      const int64_t width = std::ssize(rows) / 60;
      std::vector<float> result;
      for (const int64_t token : {0, 1, 2, 3, 42, 43, 44, 45, 46, 47, 48, 49, 50}) {
        result.insert(result.end(), rows.begin() + token * width, rows.begin() + (token + 1) * width);
      }
      return result;
    };
    const std::vector<double> expected =
        oracle_attention(host, static_cast<int64_t>(layer), compact(tokens.query[layer]), compact(tokens.key[layer]),
                         compact(tokens.value[layer]), 12, 1);
    CHECK(relative_error(outputs[layer], expected) < 1e-5);
  }
  CHECK(sequence->next_position() == 12);
}

TEST_CASE("heads that keep different tokens are numbered anew each by itself") {
  const ToyHost host(group_shape());
  const ToyTokens tokens = host.tokens(130, 29);
  const auto runtime = open_runtime({});
  EvictionPolicy policy = small_policy("h2o", 30, 5);
  policy.selection.reindexed = true;
  const auto sequence = make_sequence(runtime, host, nullptr, evicting(policy));
  const auto twin = make_sequence(runtime, host, nullptr, evicting(small_policy("h2o", 30, 5)));
  for (const auto& each : {sequence, twin}) (void)run_step(runtime, host, {{each, &tokens, 0, 100, false, {}}});
  CHECK(sequence->next_position() == 30);
  for (int64_t layer = 0; layer < 5; ++layer) {
    const auto index = static_cast<size_t>(layer);
    const KeptByHead kept = kept_by_head(*twin, layer);
    for (size_t head = 0; head < 2; ++head) {
      const auto positions = sequence->positions(layer, static_cast<int64_t>(head));
      REQUIRE(positions.ok());
      for (size_t token = 0; token < 30; ++token) CHECK((*positions)[token] == static_cast<int32_t>(token));
      // The same keys as those of the twin, which kept its positions.
      std::vector<float> rows(30 * 8);
      const MutableTensorView view{reinterpret_cast<std::byte*>(rows.data()), NumberFormat::kF32, 30, 8, 8};
      REQUIRE(sequence->rebuild({layer, backend::Side::kKeys, false, 0, 30, static_cast<int64_t>(head)}, view).ok());
      for (size_t token = 0; token < 30; ++token) {
        const float* given = tokens.key[index].data() + kept[head][token] * 16 + static_cast<int64_t>(head) * 8;
        CHECK(std::equal(given, given + 8, rows.begin() + static_cast<int64_t>(token) * 8));
      }
    }
  }
  for (int64_t token = 100; token < 130; ++token) {
    (void)run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
    CHECK(sequence->next_position() == 30);
  }
}

TEST_CASE("pinned tokens, exempt layers, and the host's word") {
  ToyShape shape = group_shape();
  shape.window = 50;  // of layers 1 and 3
  const ToyHost host(shape);
  const ToyTokens tokens = host.tokens(100, 27);
  const auto runtime = open_runtime({});
  SequenceEviction eviction;
  eviction.policy = small_policy("snapkv", 30, 5);
  eviction.pinned = {{10, 14}, {70, 71}};
  SequencePolicy policy;
  policy.eviction = std::make_shared<SequenceEviction>(eviction);
  const auto sequence = make_sequence(runtime, host, nullptr, policy);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 100, false, {}}});
  for (int64_t layer = 0; layer < 5; ++layer) {
    for (const std::vector<int32_t>& head : kept_by_head(*sequence, layer)) {
      for (const int32_t token : {10, 11, 12, 13, 70}) CHECK(std::binary_search(head.begin(), head.end(), token));
      CHECK(std::ssize(head) == (layer % 2 == 1 ? 100 : 30));
    }
  }
  eviction.exempt = {1, 0, 0, 1, 1};
  eviction.pinned = {{0, 40}};
  policy.eviction = std::make_shared<SequenceEviction>(eviction);
  const auto other = make_sequence(runtime, host, nullptr, policy);
  (void)run_step(runtime, host, {{other, &tokens, 0, 80, true, {}}});
  CHECK(other->held_tokens(1, 0) == 80);
  REQUIRE(other->compress().ok());
  CHECK(other->held_tokens(0, 0) == 80);
  CHECK(other->held_tokens(1, 0) == 48);  // forty that are pinned, a window of eight: beyond the budget
  CHECK(other->held_tokens(2, 1) == 48);
  REQUIRE(other->compress().ok());
  CHECK(other->held_tokens(2, 1) == 48);
}

TEST_CASE("scores that are no numbers are an error, and nothing has changed") {
  const ToyHost host(group_shape());
  ToyTokens tokens = host.tokens(60, 28);
  for (float& number : tokens.query[2]) number *= 1e25f;
  for (float& number : tokens.key[2]) number *= 1e25f;
  const auto runtime = open_runtime({});
  const auto sequence = make_sequence(runtime, host, nullptr, evicting(small_policy("snapkv", 30, 5)));
  const int64_t before = runtime->arena().stats().ledger.total();
  {
    const auto step = Step::begin(runtime, {{sequence, 60, {}, false}}, {});
    REQUIRE(step.ok());
    for (int64_t layer = 0; layer < 5; ++layer) {
      GatheredInput input;
      gather_input(host, {{sequence, &tokens, 0, 60, false, {}}}, layer, {}, input);
      REQUIRE((*step)->attend(layer, input.views).ok());
    }
    const Status status = (*step)->commit();
    CHECK(status.code() == numeric_error("").code());
  }
  CHECK(sequence->storage().token_count() == 0);
  CHECK(runtime->arena().stats().ledger.total() == before);
}

TEST_CASE("what does not go together is refused when the sequence is made") {
  const ToyHost host(group_shape());
  const auto runtime = open_runtime({});
  const auto profile = group_profile(runtime, host);
  const auto refused = [&](const std::shared_ptr<const Profile>& chosen, EvictionPolicy policy) {
    const auto made = Sequence::create(runtime, host.model(), chosen, evicting(std::move(policy)));
    REQUIRE_FALSE(made.ok());
    return argument_of(made.status());
  };
  EvictionPolicy ripple = small_policy("ripplekv", 30, 5);
  ripple.budget.layer_numbers = {};
  CHECK(refused(nullptr, ripple) == "budget.layer_numbers");
  ripple.budget.layer_numbers = {1.0, 2.0};
  CHECK(refused(nullptr, ripple) == "budget.layer_numbers");
  EvictionPolicy below = small_policy("snapkv", 30, 5);
  below.budget.tokens = 7;
  CHECK(refused(nullptr, below) == "budget.tokens");
  EvictionPolicy weighed = small_policy("criticalkv", 30, 5);
  weighed.selection.interval = 4;
  CHECK(refused(profile, weighed).empty());
  EvictionPolicy forecast = small_policy("expected-attention", 30, 5);
  CHECK(refused(profile, forecast).empty());
  const auto evicts = make_sequence(runtime, host, nullptr, evicting(small_policy("snapkv", 30, 5)));
  CalibratorOptions calibration;
  calibration.groups = {{0, 1}};
  auto calibrator = Calibrator::create(runtime->shared_backend(), host.model(), calibration);
  REQUIRE(calibrator.ok());
  CHECK(argument_of(evicts->attach(*calibrator)) == "sequence");
  ToyShape windowed = group_shape();
  windowed.window = 10;
  const ToyHost other(windowed);
  const auto made = Sequence::create(runtime, other.model(), nullptr,
                                     evicting(small_policy("streaming-llm-reindexed", 12, 5)));
  CHECK(made.status().code() == unsupported_error("").code());
  CHECK(refused(profile, small_policy("streaming-llm-reindexed", 12, 5)).empty());  // a layer is in no group
  EvictionPolicy unequal = small_policy("adakv", 30, 5);
  unequal.selection.reindexed = true;
  CHECK(refused(nullptr, unequal) == "selection.reindexed");
  ToyShape bare = group_shape();
  bare.hidden = 0;
  const ToyHost without_weights(bare);
  const auto weightless =
      Sequence::create(runtime, without_weights.model(), nullptr, evicting(small_policy("criticalkv", 30, 5)));
  CHECK(weightless.status().code() == state_error("").code());
}

TEST_CASE("an open prompt that is compressed when the host asks is decided like one that ends") {
  const ToyHost host{ToyShape{}};
  const ToyTokens tokens = host.tokens(60, 1);
  for (const std::string& backend : backend_names()) {
    for (const char* name : {"snapkv", "adakv", "cake", "bellowskv-evict"}) {
      CAPTURE(name);
      const auto runtime = open_runtime({backend, 2});
      const auto profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 2});
      SequencePolicy policy = evicting(small_policy(name, 30, host.shape().layers));
      policy.recent_tokens = 8;
      const auto asked = make_sequence(runtime, host, profile, policy);
      const auto ended = make_sequence(runtime, host, profile, policy);
      (void)run_step(runtime, host, {{asked, &tokens, 0, 60, true, {}}});
      (void)run_step(runtime, host, {{ended, &tokens, 0, 60, false, {}}});
      REQUIRE(asked->compress().ok());
      CHECK(asked->held_tokens(0, 0) < 60);
      CHECK(kept_everywhere(*asked) == kept_everywhere(*ended));
    }
  }
}

}  // namespace
}  // namespace foldkv::test
