// What scoring costs a prompt of one layer: attention of 4,096 tokens in blocks of 512 rows alone, with the scores of
// the last 64 rows (as SnapKV asks for) and with those of all rows (as H2O does). The counter is the time over that of
// attention alone, measured in turn with it in the same run, since clocks change with the machine's load.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/prepared_rotation.h"
#include "tests/support/random.h"

namespace foldkv::bench {
namespace {

using test::ExactPages;
using test::MemoryBlock;
using test::PositionPages;
using test::Random;

constexpr int64_t kTokens = 4096;
constexpr int64_t kBlockRows = 512;
constexpr int64_t kLastRows = 64;

struct Geometry {
  const char* name;
  int64_t query_heads;
  int64_t kv_heads;
  int64_t head_size;
};
constexpr Geometry kGeometries[] = {{"135m", 9, 3, 64}, {"8b", 32, 8, 128}};

std::vector<int32_t> all_positions() {
  std::vector<int32_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

class Prompt {
 public:
  Prompt(backend::Backend& device, const Geometry& geometry)
      : device_(device),
        geometry_(geometry),
        random_(1),
        frequencies_(find_frequencies(geometry)),
        rotation_(device, {backend::Pairing::kHalfSplit, geometry.head_size / 2, 1.0, frequencies_.data(), nullptr}),
        exact_({32, geometry.kv_heads * geometry.head_size, NumberFormat::kF16}, kTokens, test::kZero),
        positions_(all_positions()),
        position_pages_(positions_, 32, test::kZero),
        queries_(random_.normals<float>(kTokens * row_numbers())),
        context_(queries_.size()),
        log_sum_exp_(static_cast<size_t>(kTokens * geometry.query_heads)),
        sums_(static_cast<size_t>(geometry.kv_heads * kTokens)),
        workspace_(std::max(device.attend_workspace(shape()), device.score_workspace(shape())), test::kZero) {
    for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
      exact_.put_rows(side, 0, random_.normals<float>(kTokens * geometry.kv_heads * geometry.head_size));
    }
  }

  // Rows from scored_from on are scored, each right after the attention of its block.
  void run(int64_t scored_from) {
    for (int64_t first = 0; first < kTokens; first += kBlockRows) {
      attend(first);
      const int64_t from = std::max(first, scored_from);
      if (from < first + kBlockRows) score(from, first + kBlockRows);
    }
    benchmark::DoNotOptimize(sums_.data());
  }

 private:
  static std::vector<double> find_frequencies(const Geometry& geometry) {
    std::vector<double> result;
    for (int64_t pair = 0; pair < geometry.head_size / 2; ++pair) {
      result.push_back(std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(geometry.head_size)));
    }
    return result;
  }
  [[nodiscard]] int64_t row_numbers() const { return geometry_.query_heads * geometry_.head_size; }
  [[nodiscard]] backend::AttendShape shape() const {
    return {geometry_.query_heads, geometry_.kv_heads, geometry_.head_size, 0, 0, 0, kBlockRows, 1, kTokens};
  }
  [[nodiscard]] backend::AttentionRules rules() const {
    return {geometry_.query_heads, geometry_.kv_heads, geometry_.head_size,
            1.0 / std::sqrt(static_cast<double>(geometry_.head_size)), 0.0, 0, rotation_.get()};
  }
  // Rows [first, end) over the tokens that there are when the last of them is fed.
  [[nodiscard]] backend::AttendSequence view(int64_t first, int64_t end) const {
    return {.exact = {exact_.region().pages, end},
            .exact_positions = position_pages_.region(),
            .row_count = end - first,
            .query_positions = positions_.data() + first};
  }

  void attend(int64_t first) {
    const backend::AttendSequence sequence = view(first, first + kBlockRows);
    const backend::AttendRequest request = {.rules = rules(),
                                            .exact_layout = exact_.layout(),
                                            .sequences = {&sequence, 1},
                                            .queries = queries_.data() + first * row_numbers(),
                                            .context = context_.data() + first * row_numbers(),
                                            .log_sum_exp = log_sum_exp_.data() + first * geometry_.query_heads,
                                            .workspace = workspace_.data()};
    if (!device_.attend(request).ok()) std::abort();
  }
  void score(int64_t first, int64_t end) {
    const backend::ScoreRequest request = {.rules = rules(),
                                           .exact_layout = exact_.layout(),
                                           .sequence = view(first, end),
                                           .queries = queries_.data() + first * row_numbers(),
                                           .log_sum_exp = log_sum_exp_.data() + first * geometry_.query_heads,
                                           .heads = backend::ScoreHeads::kGroupMean,
                                           .sums = sums_.data(),
                                           .list_stride = kTokens,
                                           .workspace = workspace_.data()};
    if (!device_.score(request).ok()) std::abort();
  }

  backend::Backend& device_;
  Geometry geometry_;
  Random random_;
  std::vector<double> frequencies_;
  test::PreparedRotation rotation_;
  ExactPages exact_;
  std::vector<int32_t> positions_;
  PositionPages position_pages_;
  std::vector<float> queries_, context_, log_sum_exp_, sums_;
  MemoryBlock workspace_;
};

double seconds_of(Prompt& prompt, int64_t scored_from) {
  const auto start = std::chrono::steady_clock::now();
  prompt.run(scored_from);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::nth_element(numbers.begin(), numbers.begin() + std::ssize(numbers) / 2, numbers.end());
  return numbers[numbers.size() / 2];
}

// Threads.
void prefill(benchmark::State& state, const std::string& set, const Geometry& geometry, int64_t scored_from) {
  const auto device =
      test::open_backend({"cpu", &backend::cpu_plugin(), set}, static_cast<int32_t>(state.range(0)));
  Prompt prompt(*device, geometry);
  std::vector<double> ratios;
  for (auto _ : state) {
    const double alone = seconds_of(prompt, kTokens);
    const double scored = seconds_of(prompt, scored_from);
    state.SetIterationTime(scored);
    ratios.push_back(scored / alone);
  }
  state.counters["over attention alone"] = median(ratios);
}

struct ScoreBench {
  const char* name;
  int64_t scored_from;
};
constexpr ScoreBench kScoreBenches[] = {
    {"attend_alone", kTokens}, {"attend_and_score_last_64", kTokens - kLastRows}, {"attend_and_score_all", 0}};

[[maybe_unused]] const bool registered = [] {
  for (const test::BackendChoice& choice : test::tested_choices()) {
    const std::string& set = choice.instruction_set;
    if (set == "portable") continue;
    for (const Geometry& geometry : kGeometries) {
      for (const ScoreBench& bench : kScoreBenches) {
        benchmark::RegisterBenchmark((std::string(bench.name) + "_" + geometry.name + "/" + set).c_str(),
                                     [=](benchmark::State& state) { prefill(state, set, geometry, bench.scored_from); })
            ->Arg(1)
            ->Arg(2)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace foldkv::bench
