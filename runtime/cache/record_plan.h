#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cache/sequence_storage.h"

namespace foldkv {

// What a step writes down of a sequence's attention, and the memory that it takes (attention_record.h).
struct RecordPlan {
  // Scores of an exact set's tokens, latents first, the new ones included.
  struct List {
    int64_t offset = 0;  // numbers
    int64_t latents = 0;
    int64_t tokens = 0;  // 0: none is kept
  };

  std::vector<List> lists;    // of exact sets; empty: nothing is scored
  int64_t list_numbers = 0;   // of all lists
  int64_t layer_numbers = 0;  // the most that the lists of one layer have
  int64_t window_rows = 0;    // 0: no window
  int64_t window_row_numbers = 0;
  std::vector<int64_t> window_offsets;  // of layers, in numbers for one row; -1: none
  int64_t moment_numbers = 0;           // that this step adds to; 0: none
  std::vector<int64_t> moment_offsets;  // of layers, in those of the step or of the prompt before it; -1: none

  [[nodiscard]] bool active() const { return !lists.empty() || window_rows > 0 || moment_numbers > 0; }
  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] int64_t window_bytes() const;
  [[nodiscard]] int64_t moment_bytes() const;
  [[nodiscard]] const List& list_of(const SequenceStorage& storage, const ExactPlane& plane) const {
    return lists[storage.set_index_of(plane)];
  }
};

// Numbers of one row of the window, and of the moments, of a policy that keeps them.
[[nodiscard]] int64_t window_row_numbers(const Model& model, const SequencePolicy& policy);
[[nodiscard]] int64_t all_moment_numbers(const Model& model, const SequencePolicy& policy);

struct RecordQuestion {
  int64_t new_tokens = 0;
  bool prompt_open = false;
  int64_t earlier_rows = 0;  // of the prompt's window
};
[[nodiscard]] RecordPlan plan_record(const Model& model, const SequencePolicy& policy, const SequenceStorage& storage,
                                     const RecordQuestion& question);

}  // namespace foldkv
