#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace foldkv {

// What bytes of a runtime are for.
enum class Role : int32_t { kExact, kLatent, kCorrection, kMean, kPositions, kProfile, kModel, kScratch };
inline constexpr size_t kRoleCount = 8;

// Who holds how many bytes.
class Ledger {
 public:
  void charge(Role role, int64_t bytes) { bytes_[static_cast<size_t>(role)] += bytes; }
  [[nodiscard]] int64_t of(Role role) const { return bytes_[static_cast<size_t>(role)]; }
  [[nodiscard]] int64_t total() const { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }

 private:
  std::array<int64_t, kRoleCount> bytes_{};
};

}  // namespace foldkv
