#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/cpu/attend_scene.h"
#include "tests/support/backends.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

// Out of line, or the compiler takes the pairs below for mistakes.
[[gnu::noinline]] void* counted_allocation(std::size_t size, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void give_back(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return counted_allocation(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return counted_allocation(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted_allocation(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

namespace foldkv::test {
namespace {

// Allocations of the second call: the first may touch what exists once for each thread.
template <typename Operation>
int64_t allocations_of(const Operation& operation) {
  REQUIRE(operation().ok());
  allocations = 0;
  counting = true;
  const Status status = operation();
  counting = false;
  REQUIRE(status.ok());
  return allocations;
}

TEST_CASE("attend allocates nothing") {
  const Scene scene({}, kZero);
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 3);
    const PreparedRotation rotation(*device, scene.rotation());
    for (const int64_t rows : {1, 4, 200}) {
      std::vector<float> context(static_cast<size_t>(rows * scene.row_numbers()));
      backend::AttendShape shape = scene.attend_shape(rows, 1);
      shape.total_tokens = scene.shape().latents + scene.shape().exact;
      const MemoryBlock workspace(device->attend_workspace(shape), kPoison);
      const backend::AttendSequence sequence = scene.sequence(0, rows, 0, true);
      backend::AttendRequest request = scene.request(rotation.get());
      request.sequences = {&sequence, 1};
      request.queries = scene.queries(0);
      request.context = context.data();
      request.workspace = workspace.data();
      CHECK(allocations_of([&] { return device->attend(request); }) == 0);
    }
  }
}

TEST_CASE("score allocates nothing") {
  const Scene scene({}, kZero);
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 3);
    const PreparedRotation rotation(*device, scene.rotation());
    const backend::AttendRequest attend = scene.request(rotation.get());
    for (const int64_t rows : {1, 200}) {
      for (const backend::ScoreHeads heads : {backend::ScoreHeads::kGroupMean, backend::ScoreHeads::kAllHeads}) {
        backend::ScoreRequest request;
        request.rules = attend.rules;
        request.exact_layout = attend.exact_layout;
        request.latent = attend.latent;
        request.sequence = scene.sequence(0, rows, 0, true);
        request.queries = scene.queries(0);
        request.heads = heads;
        request.list_stride = scene.shape().latents + scene.shape().exact;
        const std::vector<float> log_sum_exp(static_cast<size_t>(rows * scene.shape().query_heads), 1.0f);
        std::vector<float> sums(static_cast<size_t>(request.lists() * request.list_stride));
        request.log_sum_exp = log_sum_exp.data();
        request.sums = sums.data();
        backend::AttendShape shape = scene.attend_shape(rows, 1);
        shape.total_tokens = request.list_stride;
        const MemoryBlock workspace(device->score_workspace(shape), kPoison);
        request.workspace = workspace.data();
        CHECK(allocations_of([&] { return device->score(request); }) == 0);
      }
    }
  }
}

TEST_CASE("rows are prepared, appended, encoded and rebuilt without allocating") {
  constexpr int64_t kTokens = 150;
  constexpr int64_t kWidth = 48;
  Random random(1);
  const backend::LatentPlane plane = make_plane({{40, 4}}, 16);
  const backend::LatentLayout layout = make_layout(plane, plane, 0, 64);
  const LatentPages latents(layout, kTokens, kZero);
  const StackedPages exact({32, kWidth, NumberFormat::kF16}, 2, kTokens, kZero);
  const TensorMemory rows(NumberFormat::kF32, kTokens, kWidth, kWidth, kZero, random.normals<float>(kTokens * kWidth));
  const std::vector<float> basis = random_basis(random, 2 * kWidth, 40);
  const std::vector<uint16_t> mean = halves(random.normals<float>(2 * kWidth));
  std::vector<float> output(static_cast<size_t>(kTokens * 2 * kWidth));
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 3);
    const MemoryBlock workspace(device->latent_workspace({2 * kWidth, 40, 40, 0, kTokens}), kPoison);
    for (int64_t layer = 0; layer < 2; ++layer) {
      CHECK(allocations_of([&] {
              return device->append({rows.view(), rows.view(), 24, nullptr, 0.0, exact.layer(layer).layout(),
                                     exact.layer(layer).region(), 0});
            }) == 0);
    }
    CHECK(allocations_of([&] {
            return device->prepare_heads({rows.view(), 2, 24, nullptr, 0.0, {}, nullptr, output.data()});
          }) == 0);
    CHECK(allocations_of([&] {
            return device->encode({exact.rows(backend::Side::kKeys, 0, kTokens), mean.data(), basis.data(), &layout,
                                   latents.pool().pages(), 0, workspace.data()});
          }) == 0);
    CHECK(allocations_of([&] {
            return device->rebuild({&layout,
                                    {latents.pool().pages(), kTokens, mean.data(), nullptr, nullptr},
                                    backend::Side::kKeys, 0, kTokens, basis.data(), 0, 2 * kWidth, output.data(),
                                    workspace.data()});
          }) == 0);
  }
}

// oneDNN allocates what it likes inside; what it runs on comes from the workspace.
TEST_CASE("products of our own kernels allocate nothing when they run") {
  Random random(2);
  for (const BackendChoice& choice : tested_choices()) {
    CAPTURE(choice.name);
    const auto device = open_backend(choice, 3);
    for (const bool deterministic : {false, true}) {
      for (const int64_t rows : {1, 100}) {
        const backend::ProductShape shape = {rows, 200, 300, NumberFormat::kF16, deterministic};
        const TensorMemory weight(NumberFormat::kF16, 300, 200, 200, kZero, random.normals<float>(300 * 200));
        const std::vector<float> x = random.normals<float>(rows * 200);
        std::vector<float> y(static_cast<size_t>(rows * 300));
        auto product = device->make_product(shape);
        REQUIRE(product.ok());
        const MemoryBlock workspace((*product)->workspace_bytes(), kPoison);
        CHECK(allocations_of([&] {
                return (*product)->run({x.data(), weight.view(), {}, y.data(), workspace.data()});
              }) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
