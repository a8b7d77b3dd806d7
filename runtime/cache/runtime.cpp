#include "runtime/cache/runtime.h"

#include <algorithm>

namespace foldkv {
namespace {

template <typename Shared, typename Wanted>
std::shared_ptr<const Shared> find_shared(std::vector<std::weak_ptr<const Shared>>& list, const Wanted& wanted) {
  std::erase_if(list, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : list) {
    std::shared_ptr<const Shared> shared = entry.lock();
    if (shared != nullptr && wanted(shared->data)) return shared;
  }
  return nullptr;
}

}  // namespace

StatusOr<std::shared_ptr<Runtime>> Runtime::create(const backend::Plugin& plugin, const backend::DeviceOptions& options,
                                                   int64_t budget_bytes, RuntimeHooks hooks) {
  FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<backend::Backend> opened, plugin.open(options));
  std::shared_ptr<backend::Backend> backend = std::move(opened);
  FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena, Arena::create(backend, budget_bytes));
  return std::shared_ptr<Runtime>(
      new Runtime(std::move(backend), std::move(arena), options.deterministic, std::move(hooks)));
}

Runtime::Runtime(std::shared_ptr<backend::Backend> backend, std::unique_ptr<Arena> arena, bool deterministic,
                 RuntimeHooks hooks)
    : backend_(std::move(backend)),
      arena_(std::move(arena)),
      deterministic_(deterministic),
      hooks_(std::move(hooks)),
      times_(hooks_.measure_times) {}

void Runtime::log(LogLevel level, absl::FunctionRef<std::string()> message) const {
  if (hooks_.log) hooks_.log(level, message());
}

StatusOr<std::shared_ptr<SpillStore>> Runtime::spill_store() {
  if (hooks_.spill_directory.empty()) return state_error("the runtime has no spill directory");
  std::lock_guard<std::mutex> lock(mutex_);
  if (spill_store_ == nullptr) {
    FOLDKV_ASSIGN_OR_RETURN(spill_store_, SpillStore::create(hooks_.spill_directory));
  }
  return spill_store_;
}

Status Runtime::with_room(absl::FunctionRef<Status()> call) {
  while (true) {
    Status status = call();
    if (status.code() != absl::StatusCode::kResourceExhausted || !hooks_.pressure) return status;
    const int64_t used = arena_->stats().ledger.total();
    if (!hooks_.pressure(needed_bytes_of(status)) || arena_->stats().ledger.total() >= used) {
      log(LogLevel::kWarning, [&] { return absl::StrCat("out of budget: ", status.message()); });
      return status;
    }
  }
}

StatusOr<std::shared_ptr<const SharedModel>> Runtime::share_model(const std::shared_ptr<const Model>& model) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = find_shared(models_, [&](const PreparedModel& data) { return data.model == model; });
  if (found != nullptr) return found;
  auto shared = std::make_shared<SharedModel>();
  shared->runtime = shared_from_this();
  FOLDKV_ASSIGN_OR_RETURN(shared->data, allocate_prepared_model(*arena_, *backend_, model));
  FOLDKV_RETURN_IF_ERROR(fill_prepared_model(*backend_, shared->data));
  models_.push_back(shared);
  return shared;
}

StatusOr<std::shared_ptr<const SharedProfile>> Runtime::share_profile(const Model& model,
                                                                      const std::shared_ptr<const Profile>& profile,
                                                                      backend::Arithmetic arithmetic) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto wanted = [&](const PreparedProfile& data) {
    // Without a profile the data says only how many layers there are.
    return data.profile == profile && std::ssize(data.place_of_layer) == model.layer_count() &&
           (profile == nullptr || data.arithmetic == arithmetic);
  };
  auto found = find_shared(profiles_, wanted);
  if (found != nullptr) return found;
  auto shared = std::make_shared<SharedProfile>();
  shared->runtime = shared_from_this();
  FOLDKV_ASSIGN_OR_RETURN(shared->data, allocate_prepared_profile(*arena_, *backend_, model, profile, arithmetic));
  FOLDKV_RETURN_IF_ERROR(fill_prepared_profile(*backend_, shared->data));
  profiles_.push_back(shared);
  return shared;
}

}  // namespace foldkv
