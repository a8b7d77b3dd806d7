#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foldkv/foldkv.h"
#include "tests/field/field_tokens.h"
#include "tests/programs/stage.h"
#include "tests/support/data.h"
#include "tests/support/handles.h"

namespace foldkv::test {

// What is lived through.
struct LifeChoice {
  const char* backend = "cpu";
  int32_t stage = 0;  // of programs::Stage: model and profiles
  programs::Recipe recipe = programs::Recipe::kLearned;
  const char* eviction = nullptr;  // a named policy
  bool weights = false;            // hidden states go in
  bool faulty = false;             // behind a backend that fails on demand, in an arena that does
};

// The whole life of a cache, call by call: from the runtime over prompts, generation, forks, truncation, plans,
// snapshots and spilling to the last release. Every call uses what the ones before have made.
class Life {
 public:
  struct Call {
    std::string name;
    std::function<foldkv_status(foldkv_error*)> run;  // calls the library once and allocates nothing itself
  };

  explicit Life(const LifeChoice& choice);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }
  // Everything that a call that failed must leave as it was: counts and bytes of the runtime, statistics and snapshots
  // of all sequences that are not part of an open step.
  [[nodiscard]] std::vector<std::byte> state() const;
  // What all sequences hold. Brings those back that are spilled.
  [[nodiscard]] std::vector<std::byte> contents() const;
  [[nodiscard]] bool has_spilled() const;
  // Whether a sequence says that it has lost its tokens.
  [[nodiscard]] bool lost() const;
  // What calls have written for the host.
  [[nodiscard]] const std::vector<float>& outputs() const { return outputs_; }
  void cancel(int32_t value) { cancel_ = value; }
  // Releases all but the runtime; its bytes that are then still in use.
  uint64_t release_all();

 private:
  enum Slot : size_t { kMain, kFork, kRestored, kFirstOfTwo, kSecondOfTwo, kSlotCount };
  // A step of some sequences, with everything that its calls need.
  struct Feed {
    std::vector<size_t> slots;
    std::vector<foldkv_feed> feeds;
    std::vector<foldkv_attend> attends;
    std::vector<std::vector<float>> rows;
  };

  template <typename Options>
  [[nodiscard]] Options cancellable() const {
    auto options = sized<Options>();
    options.cancel = &cancel_;
    return options;
  }
  void add(std::string name, std::function<foldkv_status(foldkv_error*)> run);
  void add_beginning();
  void add_text();
  void add_changes();
  void add_questions();
  void add_snapshots();
  void add_spilling();
  void add_files();
  void add_step(const std::vector<size_t>& slots, int64_t tokens, bool continues = false);
  void add_attends(Feed& feed, int64_t rows);
  foldkv_status open_runtime(foldkv_error* error);
  foldkv_status create_sequence(foldkv_error* error);
  foldkv_tensor make_rows(Feed& feed, int64_t rows, int64_t width);
  foldkv_tensor make_output(int64_t rows, int64_t width);
  static void append_contents(const foldkv_sequence* sequence, std::vector<std::byte>& bytes);
  [[nodiscard]] const foldkv_sequence* at(size_t slot) const { return sequences_[slot].get(); }

  LifeChoice choice_;
  const programs::Stage& stage_;
  TemporaryFolder folder_;
  std::string snapshot_path_;
  std::string spill_path_;
  int32_t cancel_ = 0;
  uint64_t seed_ = 1;
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<float> outputs_;
  std::vector<std::byte> profile_bytes_;
  std::vector<std::byte> snapshot_;
  size_t snapshot_size_ = 0;
  std::vector<char> text_;
  std::vector<int64_t> positions_;
  std::vector<std::vector<float>> weights_;
  std::vector<foldkv_layer_weights> bound_;

  Owned<foldkv_runtime> runtime_;
  Owned<foldkv_model> model_;
  Owned<foldkv_profile> profile_;
  std::array<Owned<foldkv_sequence>, kSlotCount> sequences_;
  Owned<foldkv_step> step_;
};

}  // namespace foldkv::test
