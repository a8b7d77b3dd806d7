#pragma once

#include <cstdint>

// Places where something can fail, counted while a call is under test, so that the n-th of them fails.
namespace foldkv::test {

enum class Fault : int32_t {
  kNone,
  kHeap,           // an allocation with operator new
  kArena,          // an allocation of cache memory
  kBackendBefore,  // an operation of a backend that does nothing
  kBackendAfter,   // one that did its work and says that it failed
  kCancel          // the host cancels while an operation of a backend runs
};

// The n-th point of a kind fails, alone or with all that follow it.
struct FaultPlan {
  Fault kind = Fault::kNone;
  int64_t number = 0;  // from 1
  bool lasting = false;
};

// Puts a plan into force for its lifetime, on all threads. One at a time.
class ArmedFault {
 public:
  explicit ArmedFault(const FaultPlan& plan);
  ~ArmedFault();
  ArmedFault(const ArmedFault&) = delete;
  ArmedFault& operator=(const ArmedFault&) = delete;

  // Whether the plan has let anything fail so far.
  [[nodiscard]] static bool struck();
};

// Counts a point of that kind; true: it shall fail.
[[nodiscard]] bool fault_strikes(Fault kind);

// Blocks of operator new that have not been deleted.
[[nodiscard]] int64_t live_heap_blocks();

}  // namespace foldkv::test
