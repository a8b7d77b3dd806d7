#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/interface/plugin.h"
#include "runtime/cache/prepared.h"
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

// One device, one arena, one budget. All functions may be called from several threads.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  [[nodiscard]] static StatusOr<std::shared_ptr<Runtime>> create(const backend::Plugin& plugin,
                                                                 const backend::DeviceOptions& options,
                                                                 int64_t budget_bytes);

  [[nodiscard]] backend::Backend& backend() const { return *backend_; }
  [[nodiscard]] std::shared_ptr<backend::Backend> shared_backend() const { return backend_; }
  [[nodiscard]] Arena& arena() const { return *arena_; }
  [[nodiscard]] bool deterministic() const { return deterministic_; }

  // Prepares on first use and hands out the same data while anybody holds it.
  [[nodiscard]] StatusOr<std::shared_ptr<const SharedModel>> share_model(const std::shared_ptr<const Model>& model);
  // profile may be null: a profile without groups.
  [[nodiscard]] StatusOr<std::shared_ptr<const SharedProfile>> share_profile(
      const Model& model, const std::shared_ptr<const Profile>& profile);

  void count_sequence(int64_t change) { sequence_count_ += change; }
  [[nodiscard]] int64_t sequence_count() const { return sequence_count_; }

 private:
  Runtime(std::shared_ptr<backend::Backend> backend, std::unique_ptr<Arena> arena, bool deterministic);

  std::shared_ptr<backend::Backend> backend_;
  std::unique_ptr<Arena> arena_;
  bool deterministic_;
  std::atomic<int64_t> sequence_count_{0};
  std::mutex mutex_;  // of the two lists
  std::vector<std::weak_ptr<const SharedModel>> models_;
  std::vector<std::weak_ptr<const SharedProfile>> profiles_;
};

}  // namespace foldkv
