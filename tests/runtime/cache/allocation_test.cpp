#include <atomic>
#include <cstdlib>
#include <new>

#include "doctest/doctest.h"
#include "tests/runtime/cache/eviction_scene.h"

// Counts every allocation of the program while it is asked to.
namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

// Out of line, or the compiler takes the pair below for a mistake.
[[gnu::noinline]] void* allocate(size_t size, size_t alignment) {
  if (counting.load()) ++allocations;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size)
                     : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void give_back(void* memory) { std::free(memory); }
}  // namespace

void* operator new(size_t size) { return allocate(size, 1); }
void* operator new[](size_t size) { return allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) { return allocate(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return allocate(size, static_cast<size_t>(alignment)); }
// Sorting asks for its buffer like this.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (counting.load()) ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { give_back(memory); }

namespace foldkv::test {
namespace {

TEST_CASE("attend allocates nothing, for one token or many, exact, compressed or evicting, from either input") {
  ToyShape shape;
  shape.hidden = 24;
  const ToyHost host(shape);
  const ToyTokens tokens = host.tokens(1500, 3);
  // Deterministic: FoldKV's own products. What oneDNN allocates inside is its own affair.
  const auto runtime = open_runtime({"cpu", 2, true});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2});
  for (const std::shared_ptr<const Profile>& chosen : {std::shared_ptr<const Profile>(), profile}) {
    for (const std::string name : {"", "h2o", "snapkv", "tova", "scissorhands", "expected-attention"}) {
      CAPTURE(name);
      const bool hidden = name.empty() || name == "h2o";
      const StepRules rules{hidden, hidden};
      SequencePolicy policy;
      if (!name.empty()) {
        EvictionPolicy evicts = small_policy(name, 100, shape.layers);
        evicts.selection.interval = name == "expected-attention" ? 0 : 1;
        policy = evicting(evicts);
      }
      const auto sequence = make_sequence(runtime, host, chosen, policy);
      int64_t first = 0;
      for (int64_t count : {700, 1, 5, 1, 600}) {
        auto step = Step::begin(runtime, {{sequence, count, {}, false}}, rules);
        REQUIRE(step.ok());
        for (int64_t layer = 0; layer < shape.layers; ++layer) {
          GatheredInput input;
          gather_input(host, {{sequence, &tokens, first, count, false, {}}}, layer, rules, input);
          allocations = 0;
          counting = true;
          const Status status = (*step)->attend(layer, input.views);
          counting = false;
          REQUIRE(status.ok());
          CHECK(allocations == 0);
        }
        REQUIRE((*step)->commit().ok());
        first += count;
      }
    }
  }
  // The counter itself counts.
  allocations = 0;
  counting = true;
  const auto number = std::make_unique<int>(1);
  counting = false;
  CHECK(allocations == *number);
}

}  // namespace
}  // namespace foldkv::test
