#pragma once

#include <atomic>
#include <cstdint>

namespace foldkv {

// Who uses a sequence: one that changes it, or any number that read it. Nobody waits: who cannot begin is told so.
class SequenceUse {
 public:
  [[nodiscard]] bool try_writing() {
    int32_t none = 0;
    return users_.compare_exchange_strong(none, kWriter);
  }
  void end_writing() { users_.store(0); }

  [[nodiscard]] bool try_reading() {
    int32_t readers = users_.load();
    while (readers != kWriter) {
      if (users_.compare_exchange_weak(readers, readers + 1)) return true;
    }
    return false;
  }
  void end_reading() { users_.fetch_sub(1); }

 private:
  static constexpr int32_t kWriter = -1;
  std::atomic<int32_t> users_{0};
};

}  // namespace foldkv
