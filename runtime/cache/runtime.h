#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/interface/plugin.h"
#include "runtime/cache/phase_times.h"
#include "runtime/cache/prepared.h"
#include "runtime/cache/spill_store.h"
#include "runtime/memory/arena.h"

namespace foldkv {

// Prepared data together with the runtime whose memory it lies in.
class Runtime;
struct SharedModel {
  std::shared_ptr<Runtime> runtime;
  PreparedModel data;
};
struct SharedProfile {
  std::shared_ptr<Runtime> runtime;
  PreparedProfile data;
};

enum class LogLevel : int32_t { kError = 1, kWarning = 2, kInfo = 3 };

// What a host lets a runtime do besides its work.
struct RuntimeHooks {
  std::function<void(LogLevel level, const std::string& message)> log;  // empty: nothing is said
  std::function<bool(int64_t needed_bytes)> pressure;  // frees memory; false, or empty: there is none to free
  std::string spill_directory;                         // empty: nothing is spilled
  bool measure_times = false;
};

// One device, one arena, one budget. All functions may be called from several threads.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  [[nodiscard]] static StatusOr<std::shared_ptr<Runtime>> create(const backend::Plugin& plugin,
                                                                 const backend::DeviceOptions& options,
                                                                 int64_t budget_bytes, RuntimeHooks hooks = {});

  [[nodiscard]] backend::Backend& backend() const { return *backend_; }
  [[nodiscard]] std::shared_ptr<backend::Backend> shared_backend() const { return backend_; }
  [[nodiscard]] Arena& arena() const { return *arena_; }
  [[nodiscard]] bool deterministic() const { return deterministic_; }

  // Made when it is first asked for. State error without a spill directory.
  [[nodiscard]] StatusOr<std::shared_ptr<SpillStore>> spill_store();
  [[nodiscard]] PhaseTimes& times() const { return times_; }
  void log(LogLevel level, absl::FunctionRef<std::string()> message) const;
  // Calls and, as long as the budget is what fails and the host frees some of it, calls again.
  [[nodiscard]] Status with_room(absl::FunctionRef<Status()> call);

  // Prepares on first use and hands out the same data while anybody holds it.
  [[nodiscard]] StatusOr<std::shared_ptr<const SharedModel>> share_model(const std::shared_ptr<const Model>& model);
  // profile may be null: a profile without groups.
  // Those of both arithmetics lie side by side.
  [[nodiscard]] StatusOr<std::shared_ptr<const SharedProfile>> share_profile(
      const Model& model, const std::shared_ptr<const Profile>& profile, backend::Arithmetic arithmetic);

  void count_step() { ++step_count_; }
  [[nodiscard]] int64_t step_count() const { return step_count_; }
  void count_spilled(int64_t sequences, int64_t bytes) {
    spilled_sequences_ += sequences;
    spilled_bytes_ += bytes;
  }
  [[nodiscard]] int64_t spilled_sequences() const { return spilled_sequences_; }
  [[nodiscard]] int64_t spilled_bytes() const { return spilled_bytes_; }
  void count_sequence(int64_t change) { sequence_count_ += change; }
  [[nodiscard]] int64_t sequence_count() const { return sequence_count_; }

 private:
  Runtime(std::shared_ptr<backend::Backend> backend, std::unique_ptr<Arena> arena, bool deterministic,
          RuntimeHooks hooks);

  std::shared_ptr<backend::Backend> backend_;
  std::unique_ptr<Arena> arena_;
  bool deterministic_;
  RuntimeHooks hooks_;
  mutable PhaseTimes times_;
  std::atomic<int64_t> sequence_count_{0};
  std::atomic<int64_t> step_count_{0};
  std::atomic<int64_t> spilled_sequences_{0};
  std::atomic<int64_t> spilled_bytes_{0};
  std::mutex mutex_;  // of what follows
  std::shared_ptr<SpillStore> spill_store_;
  std::vector<std::weak_ptr<const SharedModel>> models_;
  std::vector<std::weak_ptr<const SharedProfile>> profiles_;
};

}  // namespace foldkv
