#include <atomic>
#include <string>
#include <thread>

#include "tests/field/field_world.h"

// Field reports, section I: who else is there does not matter.
namespace foldkv::test::field {
namespace {

std::vector<LayerShape> two_layers() { return layers_of(2, layer_of(4, 2, 16)); }

constexpr int64_t kGenerated = 3;

// A prompt and a few tokens.
Outputs alone(const World& world, const foldkv_profile* profile, const Tokens& text) {
  const auto sequence = make_sequence(world, profile);
  (void)feed(world, {{sequence.get(), &text, 0, 120, false, {}}});
  return generate(world, sequence.get(), text, 120, kGenerated);
}

// The same as the last of so many sequences, each of another length.
Outputs in_company(const World& world, const foldkv_profile* profile, const Tokens& text, const Tokens& others,
                   int64_t companions) {
  std::vector<Owned<foldkv_sequence>> sequences;
  std::vector<Piece> pieces;
  for (int64_t index = 0; index < companions; ++index) {
    sequences.push_back(make_sequence(world, index % 2 == 0 ? profile : nullptr));
    pieces.push_back({sequences.back().get(), &others, 0, 1 + index * 7 % 150, false, {}});
  }
  sequences.push_back(make_sequence(world, profile));
  pieces.push_back({sequences.back().get(), &text, 0, 120, false, {}});
  (void)feed(world, pieces);
  Outputs own;
  own.context.resize(world.layers().size());
  own.log_sum_exp.resize(world.layers().size());
  for (int64_t token = 0; token < kGenerated; ++token) {
    for (Piece& piece : pieces) {
      piece.first += piece.count;
      piece.count = 1;
    }
    const Outputs outputs = feed(world, pieces);
    for (size_t layer = 0; layer < outputs.context.size(); ++layer) {
      own.context[layer].insert(own.context[layer].end(), outputs.context[layer].end() - 64,
                                outputs.context[layer].end());
      own.log_sum_exp[layer].insert(own.log_sum_exp[layer].end(), outputs.log_sum_exp[layer].end() - 4,
                                    outputs.log_sum_exp[layer].end());
    }
  }
  return own;
}

TEST_CASE("the same bits alone and among 1, 6 and 31 others, on 1, 3 and 16 threads, twice") {
  const Tokens text = text_of(two_layers(), 128, 1);
  const Tokens others = text_of(two_layers(), 200, 2);
  const World first(two_layers(), {"cpu", 1});
  const auto profile = calibrate(first, text);
  const Outputs expected = alone(first, profile.get(), text);
  for (const int32_t threads : {1, 3, 16}) {
    CAPTURE(threads);
    const World world(two_layers(), {"cpu", threads});
    for (int time = 0; time < 2; ++time) CHECK(alone(world, profile.get(), text) == expected);
    for (const int64_t companions : {1, 6, 31}) {
      CHECK(in_company(world, profile.get(), text, others, companions) == expected);
    }
  }
}

// Appends on a thread of its own: what differs from the expected outputs, in words. The caller checks it, since a check
// that fails ends its test by an exception, which no thread may let out.
std::string live_beside_others(const World& world, foldkv_sequence* sequence, const Tokens& text,
                               const Outputs& expected) {
  (void)feed(world, {{sequence, &text, 0, 120, false, {}}});
  const Outputs outputs = generate(world, sequence, text, 120, kGenerated);
  return outputs == expected ? "" : "another result than alone";
}

TEST_CASE("sequences of one runtime, model and profile live on threads of their own") {
  const World world(two_layers(), {"cpu", 2});
  const Tokens text = text_of(two_layers(), 128, 3);
  const auto profile = calibrate(world, text);
  const Outputs expected = alone(world, profile.get(), text);
  constexpr size_t kThreads = 8;
  constexpr size_t kLives = 4;
  std::vector<std::string> faults(kThreads);
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) (void)world.stats();  // the runtime may be asked at any time
  });
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t life = 0; life < kLives; ++life) {
        const auto sequence = make_sequence(world, profile.get());
        faults[thread] += live_beside_others(world, sequence.get(), text, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  watcher.join();
  for (const std::string& fault : faults) CHECK(fault == "");
  CHECK(world.stats().sequence_count == 0);
}

}  // namespace
}  // namespace foldkv::test::field
