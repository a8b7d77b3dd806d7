#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/cpu/attend_scene.h"
#include "tests/support/backends.h"

// architecture.md decision 10, over regions of several partitions and in every way that work can be cut.
namespace foldkv::test {
namespace {

using Numbers = std::vector<float>;

struct Part {
  const Scene* scene;
  int64_t first;
  int64_t count;
  bool cut = true;
};

struct Result {
  Numbers context;
  Numbers log_sum_exp;

  bool operator==(const Result& other) const {
    return same_bits(context, other.context) && same_bits(log_sum_exp, other.log_sum_exp);
  }
  static bool same_bits(const Numbers& a, const Numbers& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

// Parts of sequences with equal geometry and weights, in one call. The weights are the first one's.
Result attend(backend::Backend& device, const std::vector<Part>& parts, std::byte fill = kZero) {
  const Scene& scene = *parts.front().scene;
  const PreparedRotation rotation(device, scene.rotation());
  std::vector<backend::AttendSequence> sequences;
  backend::AttendShape shape = scene.attend_shape(0, std::ssize(parts));
  Numbers queries;
  int64_t rows = 0;
  for (const Part& part : parts) {
    sequences.push_back(part.scene->sequence(part.first, part.count, rows, part.cut));
    queries.insert(queries.end(), part.scene->queries(part.first), part.scene->queries(part.first + part.count));
    rows += part.count;
    shape.total_tokens += sequences.back().exact.token_count + sequences.back().latent.token_count;
  }
  shape.rows = rows;
  Result result{Numbers(queries.size(), std::nanf("")),
                Numbers(static_cast<size_t>(rows * scene.shape().query_heads), std::nanf(""))};
  const MemoryBlock workspace(device.attend_workspace(shape), fill);
  backend::AttendRequest request = scene.request(rotation.get());
  request.sequences = sequences;
  request.queries = queries.data();
  request.context = result.context.data();
  request.log_sum_exp = result.log_sum_exp.data();
  request.workspace = workspace.data();
  REQUIRE(device.attend(request).ok());
  CHECK(workspace.canary_alive());
  return result;
}

Result in_chunks(backend::Backend& device, const Scene& scene, int64_t size, bool cut) {
  Result all;
  for (int64_t first = 0; first < scene.shape().rows; first += size) {
    const Result part = attend(device, {{&scene, first, std::min(size, scene.shape().rows - first), cut}});
    all.context.insert(all.context.end(), part.context.begin(), part.context.end());
    all.log_sum_exp.insert(all.log_sum_exp.end(), part.log_sum_exp.begin(), part.log_sum_exp.end());
  }
  return all;
}

std::vector<SceneShape> scene_shapes() {
  SceneShape many_heads;
  many_heads.query_heads = 35;
  many_heads.kv_heads = 5;
  many_heads.head_size = 10;
  many_heads.latents = 130;
  many_heads.exact = 90;
  many_heads.rows = 80;
  SceneShape window;
  window.window = 300;
  window.latents = 0;
  window.exact = 1100;
  window.rows = 400;
  SceneShape no_exact_before;
  no_exact_before.exact = 40;
  no_exact_before.rows = 40;
  no_exact_before.latents = 1500;
  return {SceneShape{}, many_heads, window, no_exact_before};
}

TEST_CASE("a row comes out the same alone and in chunks, whether later tokens are there or not") {
  for (const SceneShape& shape : scene_shapes()) {
    const Scene scene(shape, kZero);
    for (const BackendChoice& choice : tested_choices()) {
      CAPTURE(choice.name);
      CAPTURE(shape.query_heads);
      CAPTURE(shape.latents);
      const auto device = open_backend(choice, 2);
      const Result whole = attend(*device, {{&scene, 0, shape.rows}});
      for (const bool cut : {true, false}) {
        for (const int64_t size : {7, 64, 256}) CHECK(in_chunks(*device, scene, size, cut) == whole);
      }
      CHECK(in_chunks(*device, scene, 1, true) == whole);
    }
  }
}

TEST_CASE("the number of threads does not change results, and neither do threads of the host") {
  for (const SceneShape& shape : scene_shapes()) {
    const Scene scene(shape, kZero);
    for (const BackendChoice& choice : tested_choices()) {
      CAPTURE(choice.name);
      const auto one = open_backend(choice, 1);
      for (const int64_t rows : {int64_t{1}, int64_t{5}, shape.rows}) {
        const std::vector<Part> parts = {{&scene, shape.rows - rows, rows}};
        const Result expected = attend(*one, parts);
        for (const int32_t threads : {2, 3, 7}) CHECK(attend(*open_backend(choice, threads), parts) == expected);
        backend::DeviceOptions host;
        host.threads = 3;
        host.instruction_set = choice.instruction_set;
        host.parallel_for = [](void*, int32_t count, void (*task)(void*, int32_t), void* context) {
          for (int32_t index = count - 1; index >= 0; --index) task(context, index);
        };
        auto on_host = choice.plugin->open(host);
        REQUIRE(on_host.ok());
        CHECK(attend(**on_host, parts) == expected);
      }
    }
  }
}

TEST_CASE("other sequences in the call, of any length, do not change results") {
  SceneShape longer;
  longer.latents = 2100;
  longer.seed = 2;
  SceneShape empty;
  empty.latents = 0;
  empty.exact = 3;
  empty.rows = 3;
  empty.seed = 3;
  const Scene scene({}, kZero);
  const Scene long_scene(longer, kZero);
  const Scene short_scene(empty, kZero);
  const int64_t last = scene.shape().rows - 1;
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 3);
    const Part single = {&scene, last, 1};
    const Part block = {&scene, 200, 90};
    for (const Part& part : {single, block}) {
      const Result alone = attend(*device, {part});
      // The other scenes lend their tokens, but the call has the first one's weights.
      const std::vector<Part> parts = {part, {&long_scene, 699, 1}, {&short_scene, 0, 0}, {&long_scene, 100, 40},
                                       {&short_scene, 0, 3}, {&long_scene, 300, 2}};
      const Result together = attend(*device, parts);
      CHECK(std::equal(alone.context.begin(), alone.context.end(), together.context.begin()));
      CHECK(std::equal(alone.log_sum_exp.begin(), alone.log_sum_exp.end(), together.log_sum_exp.begin()));
    }
  }
}

TEST_CASE("what lies in unused memory does not matter") {
  const Scene clean({}, kZero);
  const Scene poisoned({}, kPoison);
  poisoned.poison_spare_slots();
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 2);
    const std::vector<std::pair<int64_t, int64_t>> parts = {{699, 1}, {0, 700}, {330, 20}};
    for (const auto& [first, count] : parts) {
      CHECK(attend(*device, {{&poisoned, first, count}}, kPoison) == attend(*device, {{&clean, first, count}}));
    }
  }
}

TEST_CASE("a long region, whose partitions grow, gives a row the same alone and among many") {
  SceneShape shape;
  shape.query_heads = 2;
  shape.kv_heads = 1;
  shape.head_size = 4;
  shape.latents = 40'000;
  shape.exact = 17'000;
  shape.rows = 100;
  const Scene scene(shape, kZero);
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 2);
    const Result whole = attend(*device, {{&scene, 0, 100}});
    const Result last = attend(*device, {{&scene, 99, 1}});
    CHECK(std::equal(last.context.begin(), last.context.end(), whole.context.end() - 8));
  }
}

TEST_CASE("a workspace that was sized for the largest layer and step serves smaller ones") {
  for (const BackendChoice& choice : tested_choices()) {
    const auto device = open_backend(choice, 3);
    Random random(5);
    for (int round = 0; round < 2000; ++round) {
      const auto random_shape = [&random](const backend::AttendShape& least) {
        const auto more = [&random](int64_t from, int64_t by) { return from + random.between(0, by); };
        return backend::AttendShape{more(least.query_heads, 90),       more(least.kv_heads, 1),
                                    more(least.head_size, 60),         more(least.key_latent_width, 200),
                                    more(least.value_latent_width, 200), more(least.correction_rank, 9),
                                    more(least.rows, 200),             more(least.sequences, 9),
                                    more(least.total_tokens, 90'000)};
      };
      const backend::AttendShape small = random_shape({1, 1, 1, 0, 0, 0, 1, 1, 1});
      CHECK(device->attend_workspace(small) <= device->attend_workspace(random_shape(small)));
    }
  }
}

}  // namespace
}  // namespace foldkv::test
