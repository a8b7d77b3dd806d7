#include <limits>
#include <string>

#include "abi/backend_registry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/write_ledger.h"

namespace foldkv::abi {
namespace {

constexpr int32_t kLargestThreadCount = 1024;

StatusOr<backend::DeviceOptions> device_options(const foldkv_runtime_options& options, const backend::Plugin& plugin) {
  if (options.device < 0 || options.device >= plugin.device_count()) {
    return argument_error("options.device", absl::StrCat("is ", options.device, ", backend ", plugin.name, " has ",
                                                         plugin.device_count(), " devices"));
  }
  if (options.threads < 0 || options.threads > kLargestThreadCount) {
    return argument_error("options.threads",
                          absl::StrCat("is ", options.threads, ", expected 0 to ", kLargestThreadCount));
  }
  if (options.deterministic != 0 && options.deterministic != 1) {
    return argument_error("options.deterministic", absl::StrCat("is ", options.deterministic, ", expected 0 or 1"));
  }
  backend::DeviceOptions device;
  device.device = options.device;
  device.threads = options.threads;
  device.deterministic = options.deterministic == 1;
  if (options.instruction_set != nullptr) device.instruction_set = options.instruction_set;
  device.parallel_for = options.parallel_for;
  device.parallel_for_context = options.parallel_for_context;
  return device;
}

StatusOr<RuntimeHooks> read_hooks(const foldkv_runtime_options& options) {
  if (options.measure_times != 0 && options.measure_times != 1) {
    return argument_error("options.measure_times", absl::StrCat("is ", options.measure_times, ", expected 0 or 1"));
  }
  if (options.reserved != 0) return argument_error("options.reserved", "is not zero");
  RuntimeHooks hooks;
  hooks.measure_times = options.measure_times == 1;
  if (options.spill_directory != nullptr) hooks.spill_directory = options.spill_directory;
  if (options.log != nullptr) {
    hooks.log = [log = options.log, context = options.log_context](LogLevel level, const std::string& message) {
      log(context, static_cast<int32_t>(level), message.c_str());
    };
  }
  if (options.pressure != nullptr) {
    hooks.pressure = [pressure = options.pressure, context = options.pressure_context](int64_t needed_bytes) {
      return pressure(context, static_cast<uint64_t>(needed_bytes)) != 0;
    };
  }
  return hooks;
}

StatusOr<std::shared_ptr<Runtime>> create_runtime(const foldkv_runtime_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_runtime_options options, read_struct(source, "options"));
  FOLDKV_ASSIGN_OR_RETURN(const backend::Plugin* plugin,
                          find_backend(options.backend == nullptr ? backend_at(0).name : options.backend));
  FOLDKV_ASSIGN_OR_RETURN(const backend::DeviceOptions device, device_options(options, *plugin));
  if (options.budget_bytes < static_cast<uint64_t>(kBlockAlignment) ||
      options.budget_bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2)) {
    return argument_error("options.budget_bytes",
                          absl::StrCat("is ", options.budget_bytes, ", expected ", kBlockAlignment, " to 2^62"));
  }
  FOLDKV_ASSIGN_OR_RETURN(RuntimeHooks hooks, read_hooks(options));
  return Runtime::create(*plugin, device, static_cast<int64_t>(options.budget_bytes), std::move(hooks));
}

foldkv_runtime_stats runtime_stats(const Runtime& runtime) {
  const ArenaStats arena = runtime.arena().stats();
  foldkv_runtime_stats stats{};
  stats.threads = runtime.backend().thread_count();
  stats.budget_bytes = static_cast<uint64_t>(arena.budget);
  stats.used_bytes = static_cast<uint64_t>(arena.ledger.total());
  stats.peak_bytes = static_cast<uint64_t>(arena.peak);
  stats.resident_bytes = static_cast<uint64_t>(arena.resident);
  stats.largest_free_bytes = static_cast<uint64_t>(arena.largest_free);
  stats.ledger = public_ledger(arena.ledger);
  write_text(stats.backend, std::string(runtime.backend().name()));
  write_text(stats.instruction_set, std::string(runtime.backend().instruction_set()));
  stats.sequence_count = runtime.sequence_count();
  stats.spilled_sequences = runtime.spilled_sequences();
  stats.spilled_bytes = static_cast<uint64_t>(runtime.spilled_bytes());
  return stats;
}

foldkv_times public_times(const Runtime& runtime) {
  const PhaseTimes& measured = runtime.times();
  foldkv_times times{};
  times.project = measured.seconds(Phase::kProject);
  times.append = measured.seconds(Phase::kAppend);
  times.attend = measured.seconds(Phase::kAttend);
  times.score = measured.seconds(Phase::kScore);
  times.decide = measured.seconds(Phase::kDecide);
  times.encode = measured.seconds(Phase::kEncode);
  times.save = measured.seconds(Phase::kSave);
  times.restore = measured.seconds(Phase::kRestore);
  times.steps = measured.measured() ? runtime.step_count() : 0;
  return times;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_runtime_create(const foldkv_runtime_options* options, foldkv_runtime** runtime,
                                    foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<foldkv::Runtime> created, foldkv::abi::create_runtime(options));
    *runtime = new foldkv_runtime{std::move(created)};
    return absl::OkStatus();
  });
}

void foldkv_runtime_release(foldkv_runtime* runtime) { delete runtime; }

foldkv_status foldkv_runtime_get_stats(const foldkv_runtime* runtime, foldkv_runtime_stats* stats,
                                       foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(stats, "stats"));
    foldkv::abi::write_struct(foldkv::abi::runtime_stats(*runtime->object), stats);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_runtime_trim(foldkv_runtime* runtime, uint64_t* freed_bytes, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    const int64_t freed = runtime->object->arena().trim();
    if (freed_bytes != nullptr) *freed_bytes = static_cast<uint64_t>(freed);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_runtime_get_times(const foldkv_runtime* runtime, foldkv_times* times, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(times, "times"));
    foldkv::abi::write_struct(foldkv::abi::public_times(*runtime->object), times);
    return absl::OkStatus();
  });
}

}  // extern "C"
