#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace foldkv {

enum class Phase : size_t { kProject, kAppend, kAttend, kScore, kDecide, kEncode, kSave, kRestore };
inline constexpr size_t kPhaseCount = 8;

// What calls of all threads have spent their time on.
class PhaseTimes {
 public:
  explicit PhaseTimes(bool measured) : measured_(measured) {}

  [[nodiscard]] bool measured() const { return measured_; }
  void add(Phase phase, std::chrono::nanoseconds time) { nanoseconds_[static_cast<size_t>(phase)] += time.count(); }
  [[nodiscard]] double seconds(Phase phase) const {
    return static_cast<double>(nanoseconds_[static_cast<size_t>(phase)].load()) * 1e-9;
  }

 private:
  bool measured_;
  std::array<std::atomic<int64_t>, kPhaseCount> nanoseconds_{};
};

// Adds the time of its scope, when times are measured.
class PhaseTimer {
 public:
  PhaseTimer(PhaseTimes& times, Phase phase) : times_(times.measured() ? &times : nullptr), phase_(phase) {
    if (times_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~PhaseTimer() {
    if (times_ != nullptr) times_->add(phase_, std::chrono::steady_clock::now() - begin_);
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  PhaseTimes* times_;
  Phase phase_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace foldkv
