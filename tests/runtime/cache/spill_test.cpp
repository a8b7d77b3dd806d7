#include <filesystem>
#include <thread>
#include <vector>

#include "doctest/doctest.h"
#include "tests/runtime/cache/exact_access.h"
#include "tests/runtime/cache/toy_host.h"
#include "tests/support/data.h"

namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 150;

struct SpillScene {
  TemporaryFolder folder;
  ToyHost host{ToyShape{}};
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<const Profile> profile;
  ToyTokens tokens = host.tokens(kPrompt + 100, 1);

  explicit SpillScene(const std::string& backend = "cpu", int64_t budget = int64_t{1} << 28) {
    RuntimeChoice choice{backend, 1, false, budget};
    choice.hooks.spill_directory = folder.path().string();
    runtime = open_runtime(choice);
    profile = calibrate(open_runtime({}), host, {2, 4, 0, 16, 2});
  }
  [[nodiscard]] std::shared_ptr<Sequence> prompt() const {
    const auto sequence = make_sequence(runtime, host, profile);
    (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
    return sequence;
  }
  [[nodiscard]] LayerOutputs generate(const std::shared_ptr<Sequence>& sequence) const {
    return run_step(runtime, host, {{sequence, &tokens, kPrompt, 1, false, {}}});
  }
  [[nodiscard]] int64_t used() const { return runtime->arena().stats().ledger.total(); }
};

TEST_CASE("a spilled sequence gives its pages back and comes back by itself, the same") {
  for (const std::string& backend : backend_names()) {
    const SpillScene scene(backend);
    const auto sequence = scene.prompt();
    const auto twin = scene.prompt();
    const std::vector<float> held = everything(*sequence);
    const int64_t before = scene.used();
    REQUIRE(sequence->spill().ok());
    CHECK(sequence->spilled());
    CHECK(scene.runtime->spilled_sequences() == 1);
    CHECK(scene.runtime->spilled_bytes() > 0);
    // Means and bases stay.
    CHECK(scene.used() < before - twin->ledger().total() * 9 / 10);
    CHECK(sequence->spill().ok());  // nothing to do
    CHECK(sequence->storage().token_count() == kPrompt);
    CHECK(std::filesystem::is_empty(scene.folder.path()));  // the file has no name
    CHECK(everything(*sequence) == held);
    CHECK_FALSE(sequence->spilled());
    CHECK(scene.used() == before);
    CHECK(scene.runtime->spilled_bytes() == 0);
    REQUIRE(sequence->spill().ok());
    CHECK(scene.generate(sequence) == scene.generate(twin));
    REQUIRE(sequence->spill().ok());
    CHECK(sequence->fork().value()->storage().token_count() == kPrompt + 1);
    REQUIRE(sequence->spill().ok());
    CHECK(sequence->truncate(20).ok());
    CHECK(sequence->positions().value().size() == 20);
  }
}

TEST_CASE("pages that others hold stay in memory, and are shared again afterwards") {
  const SpillScene scene;
  const auto sequence = scene.prompt();
  const auto fork = sequence->fork().value();
  (void)scene.generate(fork);
  const int64_t before = scene.used();
  const int64_t shared = fork->shared_bytes();
  const std::vector<float> held = everything(*fork);
  const int64_t own = fork->ledger().total() - shared;
  REQUIRE(fork->spill().ok());
  CHECK(scene.used() == before - own);
  CHECK(everything(*fork) == held);
  CHECK(fork->shared_bytes() == shared);
  CHECK(scene.used() == before);
}

TEST_CASE("many more sequences than the budget holds take turns") {
  const SpillScene scene("cpu", 900'000);
  std::vector<std::shared_ptr<Sequence>> sequences;
  for (int64_t index = 0; index < 20; ++index) {
    sequences.push_back(scene.prompt());
    REQUIRE(sequences.back()->spill().ok());
  }
  const LayerOutputs first = scene.generate(sequences[0]);
  REQUIRE(sequences[0]->spill().ok());
  for (size_t index = 1; index < sequences.size(); ++index) {
    CHECK(scene.generate(sequences[index]) == first);
    REQUIRE(sequences[index]->spill().ok());
  }
}

TEST_CASE("what does not fit back stays where it is") {
  const SpillScene scene("cpu", 900'000);
  const auto sequence = scene.prompt();
  const std::vector<float> held = everything(*sequence);
  REQUIRE(sequence->spill().ok());
  const int64_t before = scene.used();
  {
    std::vector<Block> fillers;
    while (true) {
      auto filler = Block::allocate(scene.runtime->arena(), Role::kModel, 4096);
      if (!filler.ok()) break;
      fillers.push_back(*std::move(filler));
    }
    fillers.resize(fillers.size() - 3);
    const int64_t filled = scene.used();
    CHECK(sequence->positions().status().code() == absl::StatusCode::kResourceExhausted);
    CHECK(Step::begin(scene.runtime, {{sequence, 1, {}, false}}, {}).status().code() ==
          absl::StatusCode::kResourceExhausted);
    CHECK(scene.used() == filled);
    CHECK(sequence->spilled());
  }
  CHECK(scene.used() == before);
  CHECK(everything(*sequence) == held);
}

TEST_CASE("readers that come at once bring a sequence back once") {
  const SpillScene scene;
  const auto sequence = scene.prompt();
  const std::vector<int32_t> positions = sequence->positions().value();
  REQUIRE(sequence->spill().ok());
  std::vector<std::thread> readers;
  std::vector<std::vector<int32_t>> found(4);
  for (auto& place : found) {
    readers.emplace_back([&] {
      const auto read = sequence->positions(1, 0);
      if (read.ok()) place = *read;
      (void)sequence->ledger();
    });
  }
  for (std::thread& reader : readers) reader.join();
  for (const auto& place : found) CHECK(place == positions);
}

TEST_CASE("a sequence is not spilled without a folder, into one that is not there, or while it is in use") {
  const SpillScene scene;
  const auto sequence = scene.prompt();
  {
    const auto step = Step::begin(scene.runtime, {{sequence, 1, {}, false}}, {});
    REQUIRE(step.ok());
    CHECK(sequence->spill().code() == absl::StatusCode::kFailedPrecondition);
  }
  const auto runtime = open_runtime({});
  CHECK(make_sequence(runtime, scene.host, nullptr)->spill().code() == absl::StatusCode::kFailedPrecondition);
  RuntimeChoice nowhere;
  nowhere.hooks.spill_directory = (scene.folder.path() / "nothing").string();
  const auto elsewhere = make_sequence(open_runtime(nowhere), scene.host, nullptr);
  const Status status = elsewhere->spill();
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(native_code_of(status) == 2);
  CHECK_FALSE(elsewhere->spilled());
}

TEST_CASE("damage to a spill file is seen, and what is free in it is used again") {
  const TemporaryFolder folder;
  auto created = SpillStore::create(folder.path().string());
  REQUIRE(created.ok());
  const std::shared_ptr<SpillStore> store = *created;
  std::vector<std::byte> piece(1000, std::byte{7});
  {
    SpilledPieces pieces(store, 1010);
    REQUIRE(pieces.write(piece.data(), 1000).ok());
    REQUIRE(pieces.write(piece.data(), 10).ok());
    CHECK(store->end() == 1010);
    REQUIRE(pieces.read(1, piece.data(), 10).ok());
    CHECK(pieces.read(0, piece.data(), 999).code() == absl::StatusCode::kDataLoss);
    SpilledPieces others(store, 500);
    auto third = std::make_unique<SpilledPieces>(store, 300);
    SpilledPieces last(store, 20);
    CHECK(store->end() == 1830);
    third.reset();
    SpilledPieces small(store, 200);
    CHECK(store->end() == 1830);
    REQUIRE(small.write(piece.data(), 200).ok());
    REQUIRE(pieces.read(0, piece.data(), 1000).ok());
  }
  CHECK(store->end() == 0);
  CHECK(store->read(0, piece.data(), 1).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("any number of spilled sequences needs one descriptor") {
  const SpillScene scene;
  std::vector<std::shared_ptr<Sequence>> sequences;
  const auto prompt = scene.prompt();
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  for (int64_t index = 0; index < 50; ++index) {
    sequences.push_back(prompt->fork().value());
    (void)scene.generate(sequences.back());
    REQUIRE(sequences.back()->spill().ok());
  }
  CHECK(descriptors() == before + 1);
  CHECK(scene.runtime->spilled_sequences() == 50);
}

}  // namespace
}  // namespace foldkv::test
