/*
 * The C header with C++ manners: move-only handles that release themselves, structs that know their size, and
 * results that carry either a value or the error. Header-only, C++20, no exceptions and no RTTI needed.
 *
 *   auto options = foldkv::init<foldkv_runtime_options>();
 *   options.budget_bytes = 64u << 20;
 *   auto runtime = foldkv::Runtime::create(options);
 *   if (!runtime) return complain(runtime.error().message);
 *   auto sequence = foldkv::Sequence::create(*runtime, *model, nullptr);
 *
 * Every function here calls the C function of its name; foldkv.h says what that does. Option structs are taken by
 * value and their struct_size is filled in, so {.budget_bytes = 64u << 20} does as well (gcc's -Wextra then names the
 * fields that were left out). The rules for threads, ownership and failure are those of foldkv.h.
 *
 * Since 0.1.
 */
#ifndef FOLDKV_FOLDKV_HPP_
#define FOLDKV_FOLDKV_HPP_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foldkv/foldkv.h"

namespace foldkv {
// A namespace of its own in every name the linker sees: the static library has classes of the same names inside.
inline namespace wrapper {

// A zeroed struct with its size set, as FOLDKV_INIT makes it in C.
template <class Struct>
[[nodiscard]] constexpr Struct init() {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

// What a call without a result returns: fine, or an error with its words.
class [[nodiscard]] Outcome {
 public:
  // Calls `function` with a fresh error struct as its last argument.
  template <class Function, class... Arguments>
  static Outcome of(Function function, Arguments... arguments) {
    Outcome outcome;
    outcome.error_.status = function(arguments..., &outcome.error_);
    return outcome;
  }

  [[nodiscard]] bool ok() const { return error_.status == FOLDKV_OK; }
  [[nodiscard]] explicit operator bool() const { return ok(); }
  [[nodiscard]] foldkv_status status() const { return error_.status; }
  [[nodiscard]] const foldkv_error& error() const { return error_; }

 private:
  Outcome() {
    error_.struct_size = sizeof(foldkv_error);
    error_.status = FOLDKV_OK;
    error_.native_code = 0;
    error_.argument[0] = '\0';
    error_.message[0] = '\0';
  }

  foldkv_error error_;
};

// A value, or the error that stands in its place. Reading the value of a failed result is undefined, as with
// std::optional; debug builds assert.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value, Outcome outcome) : outcome_(outcome), value_(std::move(value)) { assert(outcome.ok()); }
  Result(Outcome failure) : outcome_(failure) { assert(!failure.ok()); }

  [[nodiscard]] bool ok() const { return outcome_.ok(); }
  [[nodiscard]] explicit operator bool() const { return ok(); }
  [[nodiscard]] foldkv_status status() const { return outcome_.status(); }
  [[nodiscard]] const foldkv_error& error() const { return outcome_.error(); }

  [[nodiscard]] T& operator*() & { return *value_; }
  [[nodiscard]] const T& operator*() const& { return *value_; }
  [[nodiscard]] T&& operator*() && { return *std::move(value_); }
  [[nodiscard]] T* operator->() { return &*value_; }
  [[nodiscard]] const T* operator->() const { return &*value_; }

 private:
  Outcome outcome_;
  std::optional<T> value_;
};

// The sole owner of a C handle. Moved-from owners are empty.
template <class Handle, void (*Release)(Handle*)>
class Owner {
 public:
  explicit Owner(Handle* handle) : handle_(handle) {}
  ~Owner() { Release(handle_); }
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) Release(std::exchange(handle_, std::exchange(other.handle_, nullptr)));
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  [[nodiscard]] Handle* get() { return handle_; }
  [[nodiscard]] const Handle* get() const { return handle_; }
  // Gives the handle away; the caller releases it with the C function.
  [[nodiscard]] Handle* detach() { return std::exchange(handle_, nullptr); }

 private:
  Handle* handle_;
};

namespace detail {

// `function(arguments..., &out, &error)` for a handle type or a struct that begins with struct_size.
template <class Wrapper, class Handle, class Function, class... Arguments>
Result<Wrapper> make(Function function, Arguments... arguments) {
  Handle* handle = nullptr;
  const Outcome outcome = Outcome::of(function, arguments..., &handle);
  if (!outcome) return outcome;
  return Result<Wrapper>(Wrapper(handle), outcome);
}

template <class Struct, class Function, class... Arguments>
Result<Struct> fill(Function function, Arguments... arguments) {
  Struct value = init<Struct>();
  const Outcome outcome = Outcome::of(function, arguments..., &value);
  if (!outcome) return outcome;
  return Result<Struct>(value, outcome);
}

// Asks `function(handle, buffer, capacity, &size, &error)` for the size, then for the bytes.
template <class Handle, class Function>
Result<std::vector<std::byte>> save(Function function, const Handle* handle) {
  size_t size = 0;
  Outcome outcome = Outcome::of(function, handle, static_cast<void*>(nullptr), size_t{0}, &size);
  if (!outcome) return outcome;
  std::vector<std::byte> bytes(size);
  outcome = Outcome::of(function, handle, static_cast<void*>(bytes.data()), bytes.size(), &size);
  if (!outcome) return outcome;
  return Result<std::vector<std::byte>>(std::move(bytes), outcome);
}

template <class Struct>
Struct sized(Struct value) {
  value.struct_size = sizeof(Struct);
  return value;
}

}  // namespace detail

// ------------------------------------------------------------------------------------------------ tensors

// A dense view, row by row. Tensors that a function only reads may view const memory; it stays untouched.
[[nodiscard]] inline foldkv_tensor tensor(const void* data, int32_t dtype, std::initializer_list<int64_t> shape) {
  assert(shape.size() >= 1 && shape.size() <= 4);
  foldkv_tensor view{};
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.device = FOLDKV_HOST;
  for (const int64_t extent : shape) view.shape[view.rank++] = extent;
  return view;
}
[[nodiscard]] inline foldkv_tensor tensor(const float* data, std::initializer_list<int64_t> shape) {
  return tensor(data, FOLDKV_F32, shape);
}

// ---------------------------------------------------------------------------------------------- backends

[[nodiscard]] inline Result<foldkv_backend_info> backend(int32_t index) {
  return detail::fill<foldkv_backend_info>(foldkv_backend_get, index);
}

// ------------------------------------------------------------------------------------------------ objects

class Runtime : public Owner<foldkv_runtime, foldkv_runtime_release> {
 public:
  using Owner::Owner;
  static Result<Runtime> create(foldkv_runtime_options options) {
    options = detail::sized(options);
    return detail::make<Runtime, foldkv_runtime>(foldkv_runtime_create, &options);
  }
  [[nodiscard]] Result<foldkv_runtime_stats> stats() const {
    return detail::fill<foldkv_runtime_stats>(foldkv_runtime_get_stats, get());
  }
  [[nodiscard]] Result<foldkv_times> times() const {
    return detail::fill<foldkv_times>(foldkv_runtime_get_times, get());
  }
  Outcome trim() { return Outcome::of(foldkv_runtime_trim, get(), nullptr); }
};

class Model : public Owner<foldkv_model, foldkv_model_release> {
 public:
  using Owner::Owner;
  // The layers and rotations that `options` points to carry their own struct_size: begin them with init<>().
  static Result<Model> create(foldkv_model_options options) {
    options = detail::sized(options);
    return detail::make<Model, foldkv_model>(foldkv_model_create, &options);
  }
  Outcome bind_weights(int32_t layer, foldkv_layer_weights weights) {
    weights = detail::sized(weights);
    return Outcome::of(foldkv_model_bind_weights, get(), layer, &weights);
  }
  [[nodiscard]] uint64_t fingerprint() const { return foldkv_model_fingerprint(get()); }
};

class Profile : public Owner<foldkv_profile, foldkv_profile_release> {
 public:
  using Owner::Owner;
  static Result<Profile> load(std::span<const std::byte> bytes) {
    return detail::make<Profile, foldkv_profile>(foldkv_profile_load, static_cast<const void*>(bytes.data()),
                                                 bytes.size());
  }
  [[nodiscard]] Result<std::vector<std::byte>> save() const { return detail::save(foldkv_profile_save, get()); }
  // A published codec that needs no calibration.
  [[nodiscard]] static Result<Profile> from_codec(const Model& model, const foldkv_codec_options& options) {
    return detail::make<Profile, foldkv_profile>(foldkv_profile_from_codec, model.get(), &options);
  }
  // The same bases under new plans.
  [[nodiscard]] Result<Profile> plan(std::span<const foldkv_plan_options> plans) const {
    return detail::make<Profile, foldkv_profile>(foldkv_profile_plan, get(), plans.data(),
                                                 static_cast<int32_t>(plans.size()));
  }
  // The profile with measured sensitivities; defined behind Sensitivity.
  [[nodiscard]] inline Result<Profile> with_sensitivity(const class Sensitivity& sensitivity,
                                                        foldkv_sensitivity_source source) const;
  [[nodiscard]] Result<foldkv_layer_sensitivity> sensitivity(int32_t layer, int32_t side) const {
    return detail::fill<foldkv_layer_sensitivity>(foldkv_profile_get_sensitivity, get(), layer, side);
  }
  [[nodiscard]] Result<foldkv_sensitivity_source> sensitivity_source() const {
    return detail::fill<foldkv_sensitivity_source>(foldkv_profile_get_sensitivity_source, get());
  }
  // measured and the result: keys and values of each group.
  [[nodiscard]] Result<std::vector<double>> group_weights(int32_t plan, std::span<const double> measured) const {
    return list<double>(static_cast<int32_t>(measured.size()), [&](double* out, int32_t count) {
      return Outcome::of(foldkv_profile_group_weights, get(), plan, measured.data(), out, count);
    });
  }
  [[nodiscard]] Result<foldkv_plan_choice> choose_plan(const Runtime& runtime, const Model& model,
                                                       foldkv_plan_wish wish) const {
    wish = detail::sized(wish);
    return detail::fill<foldkv_plan_choice>(foldkv_profile_choose_plan, runtime.get(), model.get(), get(), &wish);
  }
  // With what was measured of a plan.
  [[nodiscard]] Result<Profile> record_divergence(const char* plan, double divergence, int64_t tokens) const {
    return detail::make<Profile, foldkv_profile>(foldkv_profile_record_divergence, get(), plan, divergence, tokens);
  }
  Outcome check(const Model& model) const { return Outcome::of(foldkv_profile_check, get(), model.get()); }
  [[nodiscard]] Result<foldkv_profile_info> info() const {
    return detail::fill<foldkv_profile_info>(foldkv_profile_get_info, get());
  }
  [[nodiscard]] Result<foldkv_plan_info> plan_info(int32_t index) const {
    return detail::fill<foldkv_plan_info>(foldkv_profile_get_plan, get(), index);
  }
  [[nodiscard]] Result<foldkv_group_info> group(int32_t index, int32_t plan = 0) const {
    return detail::fill<foldkv_group_info>(foldkv_profile_get_group, get(), plan, index);
  }
  [[nodiscard]] Result<std::vector<int32_t>> layers(int32_t index) const {
    const auto info = group(index);
    if (!info) return failure(info);
    return list<int32_t>(info->layer_count, [&](int32_t* out, int32_t count) {
      return Outcome::of(foldkv_profile_get_layers, get(), index, out, count);
    });
  }
  // Of each layer the one whose keys and values it reads.
  [[nodiscard]] Result<std::vector<int32_t>> sources() const {
    const auto known = info();
    if (!known) return failure(known);
    return list<int32_t>(known->layer_count, [&](int32_t* out, int32_t count) {
      return Outcome::of(foldkv_profile_get_sources, get(), out, count);
    });
  }
  [[nodiscard]] Result<std::vector<foldkv_band>> bands(int32_t index, int32_t side, int32_t plan = 0) const {
    const auto info = group(index, plan);
    if (!info) return failure(info);
    const int32_t band_count = side == FOLDKV_KEYS ? info->key_band_count : info->value_band_count;
    return list<foldkv_band>(band_count, [&](foldkv_band* out, int32_t count) {
      return Outcome::of(foldkv_profile_get_bands, get(), plan, index, side, out, count);
    });
  }
  [[nodiscard]] Result<std::vector<double>> variances(int32_t index, int32_t side) const {
    const auto info = group(index);
    if (!info) return failure(info);
    return list<double>(info->layer_count * info->key_width, [&](double* out, int32_t count) {
      return Outcome::of(foldkv_profile_get_variances, get(), index, side, out, count);
    });
  }

 private:
  template <class Info>
  static Outcome failure(const Result<Info>& info) {
    return Outcome::of([&info](foldkv_error* error) {
      *error = info.error();
      return info.status();
    });
  }
  template <class T, class Get>
  static Result<std::vector<T>> list(int32_t count, Get get_list) {
    std::vector<T> values(static_cast<size_t>(count));
    const Outcome outcome = get_list(values.data(), count);
    if (!outcome) return outcome;
    return Result<std::vector<T>>(std::move(values), outcome);
  }
};

// The parts of a named eviction policy, with its authors' settings.
[[nodiscard]] inline Result<foldkv_eviction> find_policy(const char* name) {
  return detail::fill<foldkv_eviction>(foldkv_policy_find, name);
}
[[nodiscard]] inline Result<foldkv_policy_info> policy_info(int32_t index) {
  return detail::fill<foldkv_policy_info>(foldkv_policy_get, index);
}

class Sequence : public Owner<foldkv_sequence, foldkv_sequence_release> {
 public:
  using Owner::Owner;
  // profile nullptr: every layer stays exact.
  static Result<Sequence> create(Runtime& runtime, const Model& model, const Profile* profile,
                                 foldkv_sequence_options options = {}) {
    options = detail::sized(options);
    return detail::make<Sequence, foldkv_sequence>(foldkv_sequence_create, runtime.get(), model.get(), raw(profile),
                                                   &options);
  }
  static Result<foldkv_estimate> estimate(const Runtime& runtime, const Model& model, const Profile* profile,
                                          int64_t prompt_tokens, int64_t generated_tokens,
                                          foldkv_sequence_options options = {}, foldkv_step_options step_options = {}) {
    options = detail::sized(options);
    step_options = detail::sized(step_options);
    return detail::fill<foldkv_estimate>(foldkv_sequence_estimate, runtime.get(), model.get(), raw(profile), &options,
                                         &step_options, prompt_tokens, generated_tokens);
  }
  Outcome compress() { return Outcome::of(foldkv_sequence_compress, get()); }
  [[nodiscard]] Result<foldkv_sequence_stats> stats() const {
    return detail::fill<foldkv_sequence_stats>(foldkv_sequence_get_stats, get());
  }
  [[nodiscard]] Result<std::vector<int64_t>> positions() const {
    return list_positions([&](int64_t* out, int64_t capacity, int64_t* count) {
      return Outcome::of(foldkv_sequence_get_positions, get(), out, capacity, count);
    });
  }
  // Of the tokens that one KV head of one layer holds.
  [[nodiscard]] Result<std::vector<int64_t>> kept_positions(int32_t layer, int32_t kv_head) const {
    return list_positions([&](int64_t* out, int64_t capacity, int64_t* count) {
      return Outcome::of(foldkv_sequence_get_kept_positions, get(), layer, kv_head, out, capacity, count);
    });
  }
  Outcome rebuild(foldkv_rebuild_options options, const foldkv_tensor& output) const {
    options = detail::sized(options);
    return Outcome::of(foldkv_sequence_rebuild, get(), &options, &output);
  }
  [[nodiscard]] Result<Sequence> fork() const {
    return detail::make<Sequence, foldkv_sequence>(foldkv_sequence_fork, get());
  }
  Outcome truncate(int64_t position) { return Outcome::of(foldkv_sequence_truncate, get(), position); }
  Outcome set_plan(const char* plan) { return Outcome::of(foldkv_sequence_set_plan, get(), plan); }
  Outcome spill() { return Outcome::of(foldkv_sequence_spill, get()); }
  [[nodiscard]] Result<foldkv_reclaimable> reclaimable() const {
    return detail::fill<foldkv_reclaimable>(foldkv_sequence_get_reclaimable, get());
  }
  [[nodiscard]] Result<std::string> describe() const {
    size_t size = 0;
    Outcome outcome = Outcome::of(foldkv_sequence_describe, get(), nullptr, size_t{0}, &size);
    if (!outcome) return outcome;
    std::string text(size, '\0');
    outcome = Outcome::of(foldkv_sequence_describe, get(), text.data(), text.size(), &size);
    if (!outcome) return outcome;
    text.resize(size - 1);
    return Result<std::string>(std::move(text), outcome);
  }
  // A snapshot of this sequence alone, in memory.
  [[nodiscard]] Result<std::vector<std::byte>> save(foldkv_save_options options = {}) const {
    options = detail::sized(options);
    size_t size = 0;
    Outcome outcome = Outcome::of(foldkv_sequence_save, get(), &options, nullptr, size_t{0}, &size);
    if (!outcome) return outcome;
    std::vector<std::byte> bytes(size);
    outcome = Outcome::of(foldkv_sequence_save, get(), &options, bytes.data(), bytes.size(), &size);
    if (!outcome) return outcome;
    bytes.resize(size);
    return Result<std::vector<std::byte>>(std::move(bytes), outcome);
  }
  Outcome save_file(const char* path, foldkv_save_options options = {}) const {
    options = detail::sized(options);
    const foldkv_sequence* const one[] = {get()};
    return Outcome::of(foldkv_sequences_save_file, one, 1, &options, path);
  }
  [[nodiscard]] static Result<Sequence> restore(Runtime& runtime, const Model& model, const Profile* profile,
                                                std::span<const std::byte> bytes, foldkv_restore_options options = {}) {
    options = detail::sized(options);
    return detail::make<Sequence, foldkv_sequence>(foldkv_sequence_restore, runtime.get(), model.get(), raw(profile),
                                                   &options, bytes.data(), bytes.size());
  }
  [[nodiscard]] static Result<Sequence> restore_file(Runtime& runtime, const Model& model,
                                                     const Profile* profile, const char* path,
                                                     foldkv_restore_options options = {}) {
    options = detail::sized(options);
    return detail::make<Sequence, foldkv_sequence>(
        [&](foldkv_sequence** sequence, foldkv_error* error) {
          int32_t count = 0;
          return foldkv_sequences_restore_file(runtime.get(), model.get(), raw(profile), &options, path, sequence, 1,
                                               &count, error);
        });
  }
  Outcome replace(foldkv_replace_options options, const foldkv_tensor& rows) {
    options = detail::sized(options);
    return Outcome::of(foldkv_sequence_replace, get(), &options, &rows);
  }
  Outcome perturb(foldkv_perturb_options options) {
    options = detail::sized(options);
    return Outcome::of(foldkv_sequence_perturb, get(), &options);
  }

 private:
  static const foldkv_profile* raw(const Profile* profile) { return profile == nullptr ? nullptr : profile->get(); }

  // Asks for the number of positions, then for them.
  template <class Get>
  static Result<std::vector<int64_t>> list_positions(Get get_list) {
    int64_t count = 0;
    Outcome outcome = get_list(nullptr, 0, &count);
    if (!outcome) return outcome;
    std::vector<int64_t> values(static_cast<size_t>(count));
    outcome = get_list(values.data(), count, &count);
    if (!outcome) return outcome;
    return Result<std::vector<int64_t>>(std::move(values), outcome);
  }
};

class Calibrator : public Owner<foldkv_calibrator, foldkv_calibrator_release> {
 public:
  using Owner::Owner;
  static Result<Calibrator> create(Runtime& runtime, const Model& model, foldkv_calibrator_options options = {}) {
    options = detail::sized(options);
    return detail::make<Calibrator, foldkv_calibrator>(foldkv_calibrator_create, runtime.get(), model.get(), &options);
  }
  // keys and values: one tensor of each layer.
  Outcome observe(std::span<const foldkv_tensor> keys, std::span<const foldkv_tensor> values, int64_t first_token) {
    assert(keys.size() == values.size());
    return Outcome::of(foldkv_calibrator_observe, get(), keys.data(), values.data(), static_cast<int32_t>(keys.size()),
                       first_token);
  }
  Outcome observe_gradients(std::span<const foldkv_tensor> keys, std::span<const foldkv_tensor> values,
                            int64_t first_token) {
    assert(keys.size() == values.size());
    return Outcome::of(foldkv_calibrator_observe_gradients, get(), keys.data(), values.data(),
                       static_cast<int32_t>(keys.size()), first_token);
  }
  Outcome attach(Sequence& sequence) { return Outcome::of(foldkv_calibrator_attach, get(), sequence.get()); }
  // Whatever calibrator observes the sequence stops doing so.
  static Outcome detach_from(Sequence& sequence) {
    return Outcome::of(foldkv_calibrator_attach, static_cast<foldkv_calibrator*>(nullptr), sequence.get());
  }
  [[nodiscard]] Result<foldkv_calibrator_info> info() const {
    return detail::fill<foldkv_calibrator_info>(foldkv_calibrator_get_info, get());
  }
  // What was observed so far, and a calibrator that goes on from there.
  [[nodiscard]] Result<std::vector<std::byte>> save() const { return detail::save(foldkv_calibrator_save, get()); }
  static Result<Calibrator> load(Runtime& runtime, const Model& model, std::span<const std::byte> bytes) {
    return detail::make<Calibrator, foldkv_calibrator>(foldkv_calibrator_load, runtime.get(), model.get(),
                                                       static_cast<const void*>(bytes.data()), bytes.size());
  }
  Outcome merge(const Calibrator& other) { return Outcome::of(foldkv_calibrator_merge, get(), other.get()); }
  [[nodiscard]] Result<Profile> solve(foldkv_solve_options options = {}) const {
    options = detail::sized(options);
    return detail::make<Profile, foldkv_profile>(foldkv_calibrator_solve, get(), &options);
  }
};

class Sensitivity : public Owner<foldkv_sensitivity, foldkv_sensitivity_release> {
 public:
  using Owner::Owner;
  static Result<Sensitivity> create(const Model& model) {
    return detail::make<Sensitivity, foldkv_sensitivity>(foldkv_sensitivity_create, model.get());
  }
  // Logits [rows, vocabulary] of one example.
  Outcome add(int32_t layer, int32_t side, const foldkv_tensor& reference, const foldkv_tensor& perturbed) {
    return Outcome::of(foldkv_sensitivity_add, get(), layer, side, &reference, &perturbed);
  }
  Outcome merge(const Sensitivity& other) { return Outcome::of(foldkv_sensitivity_merge, get(), other.get()); }
  [[nodiscard]] Result<foldkv_layer_sensitivity> of(int32_t layer, int32_t side) const {
    return detail::fill<foldkv_layer_sensitivity>(foldkv_sensitivity_get, get(), layer, side);
  }
};

inline Result<Profile> Profile::with_sensitivity(const Sensitivity& sensitivity,
                                                 foldkv_sensitivity_source source) const {
  source = detail::sized(source);
  return detail::make<Profile, foldkv_profile>(foldkv_profile_with_sensitivity, get(), sensitivity.get(), &source);
}

[[nodiscard]] inline foldkv_feed feed(Sequence& sequence, int64_t token_count, uint32_t flags = 0) {
  foldkv_feed value = init<foldkv_feed>();
  value.flags = flags;
  value.sequence = sequence.get();
  value.token_count = token_count;
  return value;
}

// Destroyed without commit: rolled back.
class Step : public Owner<foldkv_step, foldkv_step_release> {
 public:
  using Owner::Owner;
  static Result<Step> begin(Runtime& runtime, std::span<const foldkv_feed> feeds, foldkv_step_options options = {}) {
    options = detail::sized(options);
    return detail::make<Step, foldkv_step>(foldkv_step_begin, runtime.get(), feeds.data(),
                                           static_cast<int32_t>(feeds.size()), &options);
  }
  Outcome attend(int32_t layer, foldkv_attend attend) {
    attend = detail::sized(attend);
    return Outcome::of(foldkv_step_attend, get(), layer, &attend);
  }
  Outcome commit() { return Outcome::of(foldkv_step_commit, get()); }
};

}  // namespace wrapper
}  // namespace foldkv

#endif  // FOLDKV_FOLDKV_HPP_
