#include "tests/fault/life.h"

#include <algorithm>
#include <cstring>

#include "abi/backend_registry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "doctest/doctest.h"
#include "tests/fault/fault_points.h"
#include "tests/fault/faulty_backend.h"
#include "tests/support/layer_descriptions.h"

namespace foldkv::test {
namespace {

constexpr int64_t kHidden = 12;
constexpr uint64_t kBudget = 16u << 20;
// Outputs and snapshots have their places from the beginning: calls of a life allocate nothing themselves.
constexpr size_t kOutputNumbers = size_t{1} << 16;
constexpr size_t kSnapshotBytes = size_t{1} << 20;

template <typename Handle, typename Call>
foldkv_status create(Owned<Handle>& owner, const Call& call) {
  Handle* made = nullptr;
  const foldkv_status status = call(&made);
  if (status != FOLDKV_OK) CHECK(made == nullptr);
  owner.reset(made);
  return status;
}

int32_t* cancel_of_runtime = nullptr;  // where the backend that is being opened finds the host's flag

StatusOr<std::unique_ptr<backend::Backend>> open_faulty(const backend::DeviceOptions& options) {
  FOLDKV_ASSIGN_OR_RETURN(const backend::Plugin* plugin, abi::find_backend(options.instruction_set));
  backend::DeviceOptions inner = options;
  inner.instruction_set.clear();
  FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<backend::Backend> opened, plugin->open(inner));
  return make_faulty(std::move(opened), cancel_of_runtime);
}

foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(sequence, &stats, nullptr) == FOLDKV_OK);
  return stats;
}

template <typename Struct>
void append(std::vector<std::byte>& bytes, const Struct& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

}  // namespace

Life::Life(const LifeChoice& choice)
    : choice_(choice),
      stage_(programs::Stage::of(choice.stage)),
      snapshot_path_((folder_.path() / "snapshot").string()),
      spill_path_(folder_.path().string()),
      snapshot_(kSnapshotBytes),
      text_(size_t{1} << 16),
      positions_(size_t{1} << 10) {
  outputs_.reserve(kOutputNumbers);
  add_beginning();
  add_text();
  add_changes();
  add_questions();
  add_snapshots();
  add_spilling();
  add_files();  // waits for the disk: last, since lives are lived again up to a call
}

Life::~Life() = default;

void Life::add(std::string name, std::function<foldkv_status(foldkv_error*)> run) {
  calls_.push_back({std::move(name), std::move(run)});
}

foldkv_status Life::open_runtime(foldkv_error* error) {
  if (!choice_.faulty) {
    auto options = sized<foldkv_runtime_options>();
    options.backend = choice_.backend;
    options.threads = 1;
    options.budget_bytes = kBudget;
    options.spill_directory = spill_path_.c_str();
    return create(runtime_, [&](foldkv_runtime** made) { return foldkv_runtime_create(&options, made, error); });
  }
  cancel_of_runtime = &cancel_;
  return abi::guard(error, [&]() -> Status {
    backend::Plugin plugin;
    plugin.open = &open_faulty;
    backend::DeviceOptions options;
    options.threads = 1;
    options.instruction_set = choice_.backend;
    FOLDKV_ASSIGN_OR_RETURN(auto made, Runtime::create(plugin, options, kBudget, {.spill_directory = spill_path_}));
    made->arena().set_gate([] { return !fault_strikes(Fault::kArena); });
    runtime_.reset(new foldkv_runtime{std::move(made)});
    return absl::OkStatus();
  });
}

foldkv_status Life::create_sequence(foldkv_error* error) {
  auto eviction = sized<foldkv_eviction>();
  auto options = sized<foldkv_sequence_options>();
  options.sink_tokens = 2;
  options.recent_tokens = 6;
  options.fold_tokens = 8;
  if (choice_.eviction != nullptr) {
    const foldkv_status status = foldkv_policy_find(choice_.eviction, &eviction, error);
    if (status != FOLDKV_OK) return status;
    eviction.keep_ratio = 0.0;
    eviction.budget_tokens = 24;
    eviction.window_tokens = std::min(eviction.window_tokens, 4);
    eviction.recent_tokens = std::min(eviction.recent_tokens, 6);
    eviction.interval = 4;
    options.eviction = &eviction;
  }
  return create(sequences_[kMain], [&](foldkv_sequence** made) {
    return foldkv_sequence_create(runtime_.get(), model_.get(), profile_.get(), &options, made, error);
  });
}

void Life::add_beginning() {
  add("runtime", [this](foldkv_error* error) { return open_runtime(error); });
  add("model", [this, descriptions = std::make_shared<LayerDescriptions>(stage_.layers())](foldkv_error* error) {
    foldkv_model_options options = descriptions->options();
    options.hidden_size = choice_.weights ? kHidden : 0;
    return create(model_, [&](foldkv_model** made) { return foldkv_model_create(&options, made, error); });
  });
  const auto matrix = [this](int64_t rows, int64_t columns) {
    weights_.push_back(field::numbers_of(rows * columns, ++seed_));
    return foldkv_tensor{.data = weights_.back().data(), .dtype = FOLDKV_F32, .rank = 2, .shape = {rows, columns}};
  };
  for (int32_t layer = 0; choice_.weights && layer < stage_.layer_count(); ++layer) {
    const LayerShape& shape = stage_.layers()[static_cast<size_t>(layer)];
    auto weights = sized<foldkv_layer_weights>();
    weights.query = matrix(shape.query_width(), kHidden);
    weights.key = matrix(shape.key_width(), kHidden);
    weights.value = matrix(shape.key_width(), kHidden);
    bound_.push_back(weights);
    add("weights", [this, layer](foldkv_error* error) {
      return foldkv_model_bind_weights(model_.get(), layer, &bound_[static_cast<size_t>(layer)], error);
    });
  }
  if (const foldkv_profile* profile = stage_.profile(choice_.recipe); profile != nullptr) {
    size_t size = 0;
    REQUIRE(foldkv_profile_save(profile, nullptr, 0, &size, nullptr) == FOLDKV_OK);
    profile_bytes_.resize(size);
    REQUIRE(foldkv_profile_save(profile, profile_bytes_.data(), size, &size, nullptr) == FOLDKV_OK);
    add("profile", [this](foldkv_error* error) {
      return create(profile_, [&](foldkv_profile** made) {
        return foldkv_profile_load(profile_bytes_.data(), profile_bytes_.size(), made, error);
      });
    });
  }
  add("sequence", [this](foldkv_error* error) { return create_sequence(error); });
}

void Life::add_text() {
  add_step({kMain}, 24, true);
  add_step({kMain}, 24);
  add_step({kMain}, 1);
  add("fork", [this](foldkv_error* error) {
    return create(sequences_[kFork],
                  [&](foldkv_sequence** made) { return foldkv_sequence_fork(at(kMain), made, error); });
  });
  add_step({kMain, kFork}, 1);
  add_step({kFork}, 3);
  for (int run = 0; run < 2; ++run) add_step({kMain}, 8);
}

void Life::add_changes() {
  // Not below an eviction; exact tokens, then latents.
  for (const int64_t position : choice_.eviction == nullptr ? std::vector<int64_t>{50, 29} : std::vector<int64_t>{}) {
    add("truncate", [this, position](foldkv_error* error) {
      return foldkv_sequence_truncate(sequences_[kFork].get(), position, error);
    });
  }
  add_step({kFork}, 9);
  add("compress", [this](foldkv_error* error) { return foldkv_sequence_compress(sequences_[kMain].get(), error); });
  if (choice_.recipe == programs::Recipe::kPlans) {
    add("set plan", [this](foldkv_error* error) {
      return foldkv_sequence_set_plan(sequences_[kMain].get(), stage_.plans().back().c_str(), error);
    });
    add_step({kMain}, 1);
  }
}

void Life::add_questions() {
  const LayerShape& layer = stage_.layers().front();
  for (const int32_t side : {FOLDKV_KEYS, FOLDKV_VALUES}) {
    add("rebuild", [this, side, tensor = make_output(8, layer.head_size)](foldkv_error* error) {
      foldkv_tensor output = tensor;
      output.rank = 3;
      output.shape[2] = output.shape[1];
      output.shape[1] = 1;
      auto options = sized<foldkv_rebuild_options>();
      options.side = side;
      options.rotated = side == FOLDKV_KEYS ? 1 : 0;
      options.token_count = 8;
      options.one_head = 1;
      return foldkv_sequence_rebuild(at(kMain), &options, &output, error);
    });
  }
  add("positions", [this](foldkv_error* error) {
    int64_t count = 0;
    return foldkv_sequence_get_positions(at(kMain), positions_.data(), static_cast<int64_t>(positions_.size()), &count,
                                         error);
  });
  add("kept positions", [this](foldkv_error* error) {
    int64_t count = 0;
    return foldkv_sequence_get_kept_positions(at(kMain), 0, 0, positions_.data(),
                                              static_cast<int64_t>(positions_.size()), &count, error);
  });
  add("reclaimable", [this](foldkv_error* error) {
    auto reclaimable = sized<foldkv_reclaimable>();
    return foldkv_sequence_get_reclaimable(at(kMain), &reclaimable, error);
  });
  add("description", [this](foldkv_error* error) {
    size_t size = 0;
    return foldkv_sequence_describe(at(kMain), text_.data(), text_.size(), &size, error);
  });
  add("estimate", [this](foldkv_error* error) {
    auto estimate = sized<foldkv_estimate>();
    return foldkv_sequence_estimate(runtime_.get(), model_.get(), profile_.get(), nullptr, nullptr, 40, 10, &estimate,
                                    error);
  });
}

void Life::add_snapshots() {
  add("save", [this](foldkv_error* error) {
    const auto options = cancellable<foldkv_save_options>();
    return foldkv_sequence_save(at(kMain), &options, snapshot_.data(), snapshot_.size(), &snapshot_size_, error);
  });
  add("restore", [this](foldkv_error* error) {
    const auto options = cancellable<foldkv_restore_options>();
    return create(sequences_[kRestored], [&](foldkv_sequence** made) {
      return foldkv_sequence_restore(runtime_.get(), model_.get(), profile_.get(), &options, snapshot_.data(),
                                     snapshot_size_, made, error);
    });
  });
  add_step({kRestored}, 1);
}

void Life::add_files() {
  add("save to a file", [this](foldkv_error* error) {
    const auto options = cancellable<foldkv_save_options>();
    const std::array<const foldkv_sequence*, 2> both = {at(kMain), at(kFork)};
    return foldkv_sequences_save_file(both.data(), 2, &options, snapshot_path_.c_str(), error);
  });
  add("restore from a file", [this](foldkv_error* error) {
    const auto options = cancellable<foldkv_restore_options>();
    std::array<foldkv_sequence*, 2> both = {};
    int32_t count = 0;
    const foldkv_status status = foldkv_sequences_restore_file(runtime_.get(), model_.get(), profile_.get(), &options,
                                                               snapshot_path_.c_str(), both.data(), 2, &count, error);
    sequences_[kFirstOfTwo].reset(both[0]);
    sequences_[kSecondOfTwo].reset(both[1]);
    return status;
  });
  add_step({kFirstOfTwo, kSecondOfTwo}, 1);
}

void Life::add_spilling() {
  for (const size_t slot : {kMain, kRestored}) {
    add("spill", [this, slot](foldkv_error* error) { return foldkv_sequence_spill(sequences_[slot].get(), error); });
  }
  add_step({kMain, kRestored, kFork}, 2);
  add("spill again", [this](foldkv_error* error) { return foldkv_sequence_spill(sequences_[kMain].get(), error); });
  add("a question to a spilled sequence", [this](foldkv_error* error) {
    size_t size = 0;
    const auto options = cancellable<foldkv_save_options>();
    return foldkv_sequence_save(at(kMain), &options, nullptr, 0, &size, error);
  });
  add("trim", [this](foldkv_error* error) { return foldkv_runtime_trim(runtime_.get(), nullptr, error); });
}

foldkv_tensor Life::make_rows(Feed& feed, int64_t rows, int64_t width) {
  feed.rows.push_back(field::numbers_of(rows * width, ++seed_));
  return {.data = feed.rows.back().data(), .dtype = FOLDKV_F32, .rank = 2, .shape = {rows, width}};
}

foldkv_tensor Life::make_output(int64_t rows, int64_t width) {
  const size_t first = outputs_.size();
  REQUIRE(first + static_cast<size_t>(rows * width) <= kOutputNumbers);
  outputs_.resize(first + static_cast<size_t>(rows * width));
  return {.data = outputs_.data() + first, .dtype = FOLDKV_F32, .rank = 2, .shape = {rows, width}};
}

void Life::add_step(const std::vector<size_t>& slots, int64_t tokens, bool continues) {
  feeds_.push_back(std::make_unique<Feed>());
  Feed& feed = *feeds_.back();
  feed.slots = slots;
  for (size_t index = 0; index < slots.size(); ++index) {
    feed.feeds.push_back(sized<foldkv_feed>());
    feed.feeds.back().token_count = tokens;
    feed.feeds.back().flags = continues ? FOLDKV_FEED_CONTINUES : 0;
  }
  add("begin", [this, &feed](foldkv_error* error) {
    for (size_t index = 0; index < feed.slots.size(); ++index) {
      feed.feeds[index].sequence = sequences_[feed.slots[index]].get();
    }
    const auto options = cancellable<foldkv_step_options>();
    return create(step_, [&](foldkv_step** made) {
      return foldkv_step_begin(runtime_.get(), feed.feeds.data(), static_cast<int32_t>(feed.feeds.size()), &options,
                               made, error);
    });
  });
  add_attends(feed, tokens * static_cast<int64_t>(slots.size()));
  add("commit", [this](foldkv_error* error) { return foldkv_step_commit(step_.get(), error); });
  add("step release", [this](foldkv_error*) {
    step_.reset();
    return FOLDKV_OK;
  });
}

void Life::add_attends(Feed& feed, int64_t rows) {
  for (int32_t layer = 0; layer < stage_.layer_count(); ++layer) {
    const LayerShape& shape = stage_.layers()[static_cast<size_t>(layer)];
    auto attend = sized<foldkv_attend>();
    if (choice_.weights) {
      attend.hidden = make_rows(feed, rows, kHidden);
    } else {
      attend.query = make_rows(feed, rows, shape.query_width());
      attend.key = make_rows(feed, rows, shape.key_width());
      attend.value = make_rows(feed, rows, shape.key_width());
    }
    attend.output = make_output(rows, shape.query_width());
    attend.log_sum_exp = make_output(rows, shape.query_heads);
    feed.attends.push_back(attend);
    add("attend", [this, &feed, layer](foldkv_error* error) {
      return foldkv_step_attend(step_.get(), layer, &feed.attends[static_cast<size_t>(layer)], error);
    });
  }
}

std::vector<std::byte> Life::state() const {
  std::vector<std::byte> state;
  if (runtime_ == nullptr) return state;
  auto runtime = sized<foldkv_runtime_stats>();
  REQUIRE(foldkv_runtime_get_stats(runtime_.get(), &runtime, nullptr) == FOLDKV_OK);
  append(state, runtime.ledger);
  append(state, runtime.sequence_count);
  append(state, runtime.spilled_sequences);
  append(state, runtime.spilled_bytes);
  if (step_ != nullptr) return state;  // its sequences may not be read
  for (const Owned<foldkv_sequence>& sequence : sequences_) {
    if (sequence == nullptr) continue;
    const foldkv_sequence_stats stats = stats_of(sequence.get());
    append(state, stats);
    if (stats.spilled == 0) append_contents(sequence.get(), state);
  }
  return state;
}

std::vector<std::byte> Life::contents() const {
  std::vector<std::byte> contents;
  for (const Owned<foldkv_sequence>& sequence : sequences_) {
    if (sequence != nullptr) append_contents(sequence.get(), contents);
  }
  return contents;
}

void Life::append_contents(const foldkv_sequence* sequence, std::vector<std::byte>& bytes) {
  size_t size = 0;
  REQUIRE(foldkv_sequence_save(sequence, nullptr, nullptr, 0, &size, nullptr) == FOLDKV_OK);
  const size_t first = bytes.size();
  bytes.resize(first + size);
  REQUIRE(foldkv_sequence_save(sequence, nullptr, bytes.data() + first, size, &size, nullptr) == FOLDKV_OK);
}

bool Life::has_spilled() const {
  auto stats = sized<foldkv_runtime_stats>();
  return runtime_ != nullptr && foldkv_runtime_get_stats(runtime_.get(), &stats, nullptr) == FOLDKV_OK &&
         stats.spilled_sequences > 0;
}

bool Life::lost() const {
  return std::any_of(sequences_.begin(), sequences_.end(), [](const Owned<foldkv_sequence>& sequence) {
    if (sequence == nullptr || stats_of(sequence.get()).spilled == 1) return false;  // asking would bring it back
    foldkv_error error = sized<foldkv_error>();
    int64_t count = 0;
    return foldkv_sequence_get_positions(sequence.get(), nullptr, 0, &count, &error) == FOLDKV_E_STATE &&
           std::string(error.argument) == "sequence" && std::string(error.message).find("lost") != std::string::npos;
  });
}

uint64_t Life::release_all() {
  step_.reset();
  for (Owned<foldkv_sequence>& sequence : sequences_) sequence.reset();
  profile_.reset();
  model_.reset();
  auto stats = sized<foldkv_runtime_stats>();
  if (foldkv_runtime_get_stats(runtime_.get(), &stats, nullptr) != FOLDKV_OK) return ~uint64_t{0};
  return stats.used_bytes;
}

}  // namespace foldkv::test
