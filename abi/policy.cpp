#include <algorithm>
#include <span>
#include <vector>

#include "abi/guard.h"
#include "abi/read_eviction.h"
#include "abi/read_struct.h"
#include "runtime/policy/apportion.h"
#include "runtime/policy/named_policies.h"

extern "C" {

int32_t foldkv_policy_count(void) { return static_cast<int32_t>(foldkv::named_policies().size()); }

foldkv_status foldkv_policy_get(int32_t index, foldkv_policy_info* info, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(info, "info"));
    const int32_t count = foldkv_policy_count();
    if (index < 0 || index >= count) {
      return foldkv::argument_error("index", absl::StrCat("is ", index, ", expected 0 to ", count - 1));
    }
    const foldkv::NamedPolicy& named = foldkv::named_policies()[static_cast<size_t>(index)];
    foldkv_policy_info written{};
    foldkv::abi::write_text(written.name, named.policy.name);
    foldkv::abi::write_text(written.description, named.description);
    foldkv::abi::write_struct(written, info);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_policy_find(const char* name, foldkv_eviction* eviction, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(name, "name"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(eviction, "eviction"));
    const foldkv::StatusOr<foldkv::EvictionPolicy> policy = foldkv::find_policy(name);
    if (!policy.ok()) return foldkv::with_argument(policy.status(), "name");
    foldkv::abi::write_struct(foldkv::abi::public_eviction(*policy), eviction);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_budget_apportion(const double* weights, const int64_t* lower, const int64_t* upper, int32_t count,
                                      int64_t total, int64_t* tokens, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    if (count < 0) return foldkv::argument_error("count", absl::StrCat("is ", count, ", expected 0 or more"));
    if (count == 0) return absl::OkStatus();
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(weights, "weights"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(lower, "lower"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(upper, "upper"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(tokens, "tokens"));
    const auto size = static_cast<size_t>(count);
    FOLDKV_ASSIGN_OR_RETURN(
        const std::vector<int64_t> shares,
        foldkv::apportion(std::span(weights, size), std::span(lower, size), std::span(upper, size), total));
    std::copy(shares.begin(), shares.end(), tokens);
    return absl::OkStatus();
  });
}

}  // extern "C"
