#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/programs/program.h"
#include "tests/programs/shadow.h"
#include "tests/support/handles.h"

namespace foldkv::test::programs {

// How often what was done, so that a test can tell that everything was.
struct Tally {
  std::array<int64_t, 32> verbs{};
  std::array<int64_t, kRecipeCount> recipes{};
  std::array<int64_t, 16> statuses{};
  int64_t evicted_tokens = 0;
  int64_t latents = 0;
  int64_t pressures = 0;  // asked of the host
};

// Runs a program on the library and on the reference at once, and compares them after every operation.
class Machine {
 public:
  explicit Machine(const Program& program, Tally& tally);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Throws Mismatch.
  void run();
  // What was done so far, in words.
  [[nodiscard]] const std::vector<std::string>& text() const { return text_; }

 private:
  struct Live {
    Owned<foldkv_sequence> handle;
    Shadow shadow;
    int32_t name = 0;
    bool busy = false;  // part of the operation that runs
  };
  // A feed of the step that runs.
  struct Piece {
    Live* live = nullptr;
    std::vector<FedToken> tokens;   // as the host hands them over
    std::vector<FedToken> rounded;  // as the sequence holds them
    std::vector<float> queries;     // [tokens][layers][query width]
    std::vector<int64_t> positions;
    bool explicit_positions = false;
    bool continues = false;
  };
  struct Ledgers {
    foldkv_runtime_stats runtime{};
    std::vector<std::pair<int32_t, foldkv_sequence_stats>> sequences;  // by their names
  };

  void open_runtime();
  void perform(const Operation& operation);

  // --- verbs
  void create(const Operation& operation);
  void feed_one(const Operation& operation);
  void feed_several(const Operation& operation);
  void abandon(const Operation& operation);
  void fork(const Operation& operation);
  void truncate(const Operation& operation);
  void compress(const Operation& operation);
  void set_plan(const Operation& operation);
  void spill(const Operation& operation);
  void save_and_restore(const Operation& operation);
  void replace(const Operation& operation);
  void release(const Operation& operation);
  void call_wrongly(const Operation& operation);
  void truncate_wrongly(const Operation& operation);
  void feed_wrong_positions(const Operation& operation);
  void feed_not_a_number(const Operation& operation);
  void cancel_step(const Operation& operation);
  void touch_open_step(const Operation& operation);
  void attend_out_of_order(const Operation& operation);
  void save_badly(const Operation& operation);
  void restore_damaged(const Operation& operation);

  // --- steps
  [[nodiscard]] Piece make_piece(Live& live, int64_t count, const Operation& operation);
  // False when the budget does not hold it.
  bool run_step(std::vector<Piece> pieces);
  // Sequences that are copies of one another get the same tokens: they must answer and hold the same.
  void feed_twins(Live& first, Live& second, const Operation& operation);
  [[nodiscard]] Owned<foldkv_step> begin(const std::vector<Piece>& pieces, const foldkv_step_options* options,
                                         foldkv_status* status);
  [[nodiscard]] foldkv_status attend(foldkv_step* step, int32_t layer, const std::vector<Piece>& pieces,
                                     std::vector<float>* context, std::vector<float>* sums);
  void check_outputs(int32_t layer, const std::vector<Piece>& pieces, const std::vector<float>& context,
                     const std::vector<float>& sums) const;

  // --- snapshots
  [[nodiscard]] std::vector<Live*> companions(Live& live, int64_t most);
  [[nodiscard]] foldkv_status save(const std::vector<Live*>& lives, const foldkv_save_options& options,
                                   std::vector<uint8_t>& bytes, size_t fails_at, foldkv_error* error) const;
  [[nodiscard]] foldkv_status restore(const std::vector<uint8_t>& bytes, Recipe recipe,
                                      std::vector<Owned<foldkv_sequence>>& restored, foldkv_error* error);

  // --- what is compared
  [[nodiscard]] Live& pick(const Operation& operation) {
    return *lives_[operation.which % lives_.size()];
  }
  Live& add(foldkv_sequence* handle, Shadow shadow);
  void drop(size_t index);
  [[nodiscard]] foldkv_sequence_stats stats_of(const Live& live) const;
  [[nodiscard]] foldkv_runtime_stats runtime_stats() const;
  // False when it is spilled and there is no room to bring it back.
  [[nodiscard]] bool read_held(const Live& live, HeldTokens& held) const;
  void check(Live& live, bool reencoded = false);
  void check_stats(const Live& live) const;
  void check_ledger() const;
  [[nodiscard]] Ledgers ledgers() const;
  void check_unchanged(const Ledgers& before);
  // Whether the call did what it had to. Budgets may always be too small: nothing has changed then.
  [[nodiscard]] bool succeeded(foldkv_status status, const foldkv_error& error, const Ledgers& before);
  void check_refused(foldkv_status got, foldkv_status expected, const Ledgers& before);

  // While it lives the host releases other sequences when it is asked for room.
  class Relief {
   public:
    explicit Relief(Machine& machine) : machine_(machine) { machine_.relief_allowed_ = true; }
    ~Relief() { machine_.relief_allowed_ = false; }

   private:
    Machine& machine_;
  };

  template <typename... Parts>
  void say(const Parts&... parts) {
    text_.push_back(absl::StrCat(parts...));
  }
  static int32_t relieve(void* machine, uint64_t needed_bytes);

  const Program& program_;
  Tally& tally_;
  const Stage& stage_;
  Owned<foldkv_runtime> runtime_;
  std::vector<std::unique_ptr<Live>> lives_;
  std::vector<std::string> text_;
  int32_t names_ = 0;
  uint64_t fed_ = 0;  // tokens, so that each gets numbers of its own
  bool small_budget_ = false;
  bool relieves_ = false;  // releases sequences when asked for room
  bool relief_allowed_ = false;
  int64_t relieved_ = 0;
};

}  // namespace foldkv::test::programs
