#include <algorithm>
#include <cmath>

#include "tests/programs/machine.h"
#include "tests/programs/mismatch.h"

// Calls that must fail, and change nothing.
namespace foldkv::test::programs {
namespace {

constexpr int64_t kFewTokens = 3;

}  // namespace

void Machine::call_wrongly(const Operation& operation) {
  static constexpr std::array kCalls = {&Machine::truncate_wrongly, &Machine::feed_wrong_positions,
                                        &Machine::feed_not_a_number, &Machine::cancel_step,
                                        &Machine::touch_open_step,   &Machine::attend_out_of_order,
                                        &Machine::save_badly,        &Machine::restore_damaged};
  pick(operation).busy = true;
  (this->*kCalls[operation.choices[0] / 2 % kCalls.size()])(operation);
}

void Machine::truncate_wrongly(const Operation& operation) {
  Live& live = pick(operation);
  const int64_t position = operation.choices[1] % 2 == 0 ? -1 : live.shadow.next_position() + 1 + operation.choices[2];
  say("truncate s", live.name, " to ", position);
  const Ledgers before = ledgers();
  check_refused(foldkv_sequence_truncate(live.handle.get(), position, nullptr), FOLDKV_E_ARGUMENT, before);
}

void Machine::feed_wrong_positions(const Operation& operation) {
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(pick(operation), kFewTokens, operation));
  Piece& piece = pieces[0];
  piece.explicit_positions = true;
  foldkv_status expected = FOLDKV_E_ARGUMENT;
  switch (operation.choices[1] % 5) {
    case 0: piece.positions[1] = piece.positions[0]; break;
    case 1: piece.positions[2] = int64_t{1} << 31; break;
    case 2: piece.positions[0] = -1; break;
    case 3: piece.positions[0] = piece.live->shadow.next_position() - 1; break;
    default:  // one sequence twice
      pieces.push_back(pieces[0]);
      expected = FOLDKV_E_STATE;
  }
  say("s", pieces[0].live->name, ": feed at wrong positions, or twice in a step: ", operation.choices[1] % 5);
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  (void)begin(pieces, nullptr, &status);
  check_refused(status, expected, before);
}

void Machine::feed_not_a_number(const Operation& operation) {
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(pick(operation), kFewTokens, operation));
  const int32_t layer = operation.choices[1] % stage_.layer_count();
  const auto at = static_cast<size_t>(layer * stage_.key_width());
  float& spoiled = operation.choices[2] % 2 == 0 ? pieces[0].tokens[1].keys[at] : pieces[0].tokens[2].values[at];
  const float number = spoiled;
  spoiled = operation.choices[3] % 2 == 0 ? NAN : INFINITY;
  say("s", pieces[0].live->name, ": feed a number that is none in layer ", layer);
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  Owned<foldkv_step> step = begin(pieces, nullptr, &status);
  if (!succeeded(status, sized<foldkv_error>(), before)) return;
  std::vector<float> context;
  std::vector<float> sums;
  for (int32_t index = 0; index < layer; ++index) {
    expect(attend(step.get(), index, pieces, &context, &sums) == FOLDKV_OK, "layer ", index);
  }
  expect(attend(step.get(), layer, pieces, &context, &sums) == FOLDKV_E_NUMERIC, "a number that is none was taken");
  if (operation.choices[3] % 4 < 2) {
    spoiled = number;  // "the same layer may be tried again"
    expect(attend(step.get(), layer, pieces, &context, &sums) == FOLDKV_OK, "the layer cannot be tried again");
    check_outputs(layer, pieces, context, sums);
  }
  step.reset();
  check_unchanged(before);
}

void Machine::cancel_step(const Operation& operation) {
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(pick(operation), kFewTokens, operation));
  say("s", pieces[0].live->name, ": feed ", kFewTokens, ", cancelled, then tried further");
  int32_t cancel = 0;
  auto options = sized<foldkv_step_options>();
  options.cancel = &cancel;
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  Owned<foldkv_step> step = begin(pieces, &options, &status);
  if (!succeeded(status, sized<foldkv_error>(), before)) return;
  std::vector<float> context;
  std::vector<float> sums;
  for (int32_t layer = 0; layer < stage_.layer_count(); ++layer) {
    cancel = 1;
    expect(attend(step.get(), layer, pieces, &context, &sums) == FOLDKV_E_CANCELLED, "layer ", layer, " went on");
    cancel = 0;
    expect(attend(step.get(), layer, pieces, &context, &sums) == FOLDKV_OK, "layer ", layer, " did not go on");
    check_outputs(layer, pieces, context, sums);
  }
  cancel = 1;
  expect(foldkv_step_commit(step.get(), nullptr) == FOLDKV_E_CANCELLED, "the commit went on");
  cancel = 0;
  if (operation.choices[3] % 2 == 0) {
    step.reset();
    return check_unchanged(before);
  }
  expect(foldkv_step_commit(step.get(), nullptr) == FOLDKV_OK, "the commit did not go on");
  step.reset();
  pieces[0].live->shadow.feed(std::move(pieces[0].rounded), pieces[0].continues);
  check(*pieces[0].live);
}

void Machine::touch_open_step(const Operation& operation) {
  std::vector<Piece> pieces;
  Live& live = pick(operation);
  pieces.push_back(make_piece(live, kFewTokens, operation));
  say("s", live.name, ": calls while it is part of an open step");
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  Owned<foldkv_step> step = begin(pieces, nullptr, &status);
  if (!succeeded(status, sized<foldkv_error>(), before)) return;
  foldkv_sequence* fork = nullptr;
  size_t size = 0;
  foldkv_sequence* const handle = live.handle.get();
  expect(foldkv_sequence_fork(handle, &fork, nullptr) == FOLDKV_E_STATE && fork == nullptr, "fork in an open step");
  expect(foldkv_sequence_truncate(handle, 0, nullptr) == FOLDKV_E_STATE, "truncate in an open step");
  expect(foldkv_sequence_compress(handle, nullptr) == FOLDKV_E_STATE, "compress in an open step");
  expect(foldkv_sequence_spill(handle, nullptr) == FOLDKV_E_STATE, "spill in an open step");
  expect(foldkv_sequence_save(handle, nullptr, nullptr, 0, &size, nullptr) == FOLDKV_E_STATE, "save in an open step");
  expect(foldkv_step_commit(step.get(), nullptr) == FOLDKV_E_STATE, "commit before any layer");
  HeldTokens held;
  expect(read_held(live, held) || small_budget_, "a sequence in a step cannot be read");
  step.reset();
  check_unchanged(before);
}

void Machine::attend_out_of_order(const Operation& operation) {
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(pick(operation), kFewTokens, operation));
  say("s", pieces[0].live->name, ": layers out of order");
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  Owned<foldkv_step> step = begin(pieces, nullptr, &status);
  if (!succeeded(status, sized<foldkv_error>(), before)) return;
  std::vector<float> context;
  std::vector<float> sums;
  expect(attend(step.get(), 1, pieces, &context, &sums) == FOLDKV_E_STATE, "layer 1 before layer 0");
  expect(attend(step.get(), 0, pieces, &context, &sums) == FOLDKV_OK, "layer 0");
  expect(attend(step.get(), 0, pieces, &context, &sums) == FOLDKV_E_STATE, "layer 0 twice");
  step.reset();
  check_unchanged(before);
}

}  // namespace foldkv::test::programs
