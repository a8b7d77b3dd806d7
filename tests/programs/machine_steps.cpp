#include <algorithm>
#include <cmath>

#include "tests/programs/machine.h"
#include "tests/programs/mismatch.h"
#include "tests/support/split_mix.h"

namespace foldkv::test::programs {
namespace {

constexpr int64_t kMostTokens = 110;
constexpr int64_t kCheckedRows = 4;  // of a piece and layer: the last and some others
// Sums of some hundred products in f32, whose errors the exponential passes on: scores stay below 40.
constexpr double kTolerance = 1e-4;

// Rows of small numbers; now and then zeros, or larger ones.
void fill(SplitMix& numbers, float* row, int64_t count) {
  const uint64_t kind = numbers.next() % 16;
  const float scale = kind == 0 ? 0.0F : kind == 1 ? 6.0F : 1.0F;
  for (int64_t i = 0; i < count; ++i) row[i] = scale * numbers.next_number();
}

foldkv_tensor matrix(std::vector<float>& rows, int64_t count, int64_t heads, int64_t size) {
  return {rows.data(), FOLDKV_F32, FOLDKV_HOST, 3, 0, {count, heads, size, 0}, {}};
}

int64_t count_for(const Shadow& shadow, uint8_t choice) {
  const auto held = static_cast<int64_t>(shadow.tokens().size());
  const int64_t wanted = held == 0 ? 1 + choice % 48 : choice % 8 == 7 ? 1 + choice / 8 : 1 + choice % 3;
  return std::min(wanted, kMostTokens - held);
}

}  // namespace

Machine::Piece Machine::make_piece(Live& live, int64_t count, const Operation& operation) {
  Piece piece;
  piece.live = &live;
  live.busy = true;
  piece.continues = operation.choices[1] % 4 == 0;
  int64_t position = live.shadow.next_position();
  const int64_t jump = operation.choices[2] % 8 == 0 ? int64_t{operation.choices[3]} * 1000 : operation.choices[2] % 3;
  piece.explicit_positions = operation.choices[2] % 4 < 2 && position + jump < (1 << 21);
  if (piece.explicit_positions) position += jump;
  const int64_t width = stage_.layer_count() * stage_.key_width();
  const int64_t query_width = stage_.layers()[0].query_width();
  for (int64_t row = 0; row < count; ++row) {
    SplitMix numbers(++fed_ * 0x9e3779b97f4a7c15ULL + program_.world[2]);
    FedToken token{position, std::vector<float>(static_cast<size_t>(width)), std::vector<float>(static_cast<size_t>(width))};
    std::vector<float> query(static_cast<size_t>(stage_.layer_count() * query_width));
    for (int64_t layer = 0; layer < stage_.layer_count(); ++layer) {
      fill(numbers, token.keys.data() + layer * stage_.key_width(), stage_.key_width());
      fill(numbers, token.values.data() + layer * stage_.key_width(), stage_.key_width());
      fill(numbers, query.data() + layer * query_width, query_width);
    }
    piece.queries.insert(piece.queries.end(), query.begin(), query.end());
    piece.positions.push_back(position);
    FedToken rounded = token;
    for (float& number : rounded.keys) number = live.shadow.rounded(number);
    for (float& number : rounded.values) number = live.shadow.rounded(number);
    piece.tokens.push_back(std::move(token));
    piece.rounded.push_back(std::move(rounded));
    const bool gap = piece.explicit_positions && operation.choices[2] % 8 == 1 && row % 3 == 0;
    position += gap ? 5 : 1;
  }
  return piece;
}

Owned<foldkv_step> Machine::begin(const std::vector<Piece>& pieces, const foldkv_step_options* options,
                                  foldkv_status* status) {
  std::vector<foldkv_feed> feeds;
  for (const Piece& piece : pieces) {
    foldkv_feed& feed = feeds.emplace_back(sized<foldkv_feed>());
    feed.flags = piece.continues ? FOLDKV_FEED_CONTINUES : 0;
    feed.sequence = piece.live->handle.get();
    feed.token_count = static_cast<int64_t>(piece.tokens.size());
    feed.positions = piece.explicit_positions ? piece.positions.data() : nullptr;
  }
  const Relief relief(*this);
  foldkv_step* step = nullptr;
  foldkv_error error = sized<foldkv_error>();
  *status = foldkv_step_begin(runtime_.get(), feeds.data(), static_cast<int32_t>(feeds.size()), options, &step, &error);
  expect((*status == FOLDKV_OK) == (step != nullptr), "a step and its status do not agree");
  return Owned<foldkv_step>(step);
}

foldkv_status Machine::attend(foldkv_step* step, int32_t layer, const std::vector<Piece>& pieces,
                              std::vector<float>* context, std::vector<float>* sums) {
  const LayerShape& shape = stage_.layers()[static_cast<size_t>(layer)];
  std::vector<float> query;
  std::vector<float> key;
  std::vector<float> value;
  int64_t rows = 0;
  for (const Piece& piece : pieces) {
    for (size_t row = 0; row < piece.tokens.size(); ++row, ++rows) {
      const int64_t width = shape.query_width();
      const float* const of = piece.queries.data() + (static_cast<int64_t>(row) * stage_.layer_count() + layer) * width;
      query.insert(query.end(), of, of + width);
      const int64_t at = layer * stage_.key_width();
      key.insert(key.end(), piece.tokens[row].keys.begin() + at, piece.tokens[row].keys.begin() + at + stage_.key_width());
      value.insert(value.end(), piece.tokens[row].values.begin() + at,
                   piece.tokens[row].values.begin() + at + stage_.key_width());
    }
  }
  context->assign(query.size(), NAN);
  sums->assign(static_cast<size_t>(rows * shape.query_heads), NAN);
  auto request = sized<foldkv_attend>();
  request.query = matrix(query, rows, shape.query_heads, shape.head_size);
  request.key = matrix(key, rows, shape.kv_heads, shape.head_size);
  request.value = matrix(value, rows, shape.kv_heads, shape.head_size);
  request.output = matrix(*context, rows, shape.query_heads, shape.head_size);
  request.log_sum_exp = matrix(*sums, rows, shape.query_heads, 0);
  request.log_sum_exp.rank = 2;
  foldkv_error error = sized<foldkv_error>();
  return foldkv_step_attend(step, layer, &request, &error);
}

bool Machine::run_step(std::vector<Piece> pieces) {
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  const Owned<foldkv_step> step = begin(pieces, nullptr, &status);
  foldkv_error error = sized<foldkv_error>();
  if (!succeeded(status, error, before)) return false;
  for (int32_t layer = 0; layer < stage_.layer_count(); ++layer) {
    std::vector<float> context;
    std::vector<float> sums;
    status = attend(step.get(), layer, pieces, &context, &sums);
    expect(status == FOLDKV_OK, "layer ", layer, ": ", foldkv_status_name(status));
    check_outputs(layer, pieces, context, sums);
  }
  status = foldkv_step_commit(step.get(), &error);
  expect(status == FOLDKV_OK, "commit: ", error.argument, " ", error.message);
  for (Piece& piece : pieces) {
    piece.live->shadow.feed(std::move(piece.rounded), piece.continues);
    check(*piece.live);
    const foldkv_sequence_stats stats = stats_of(*piece.live);
    tally_.latents += stats.latent_tokens;
    tally_.evicted_tokens += stats.fed_head_tokens - stats.held_head_tokens;
  }
  return true;
}

void Machine::check_outputs(int32_t layer, const std::vector<Piece>& pieces, const std::vector<float>& context,
                            const std::vector<float>& sums) const {
  const LayerShape& shape = stage_.layers()[static_cast<size_t>(layer)];
  const int64_t group = shape.query_heads / shape.kv_heads;
  int64_t first_row = 0;
  for (const Piece& piece : pieces) {
    const auto count = static_cast<int64_t>(piece.tokens.size());
    const Shadow& shadow = piece.live->shadow;
    const int64_t at = shadow.stage().source(shadow.terms().recipe, layer) * stage_.key_width();
    for (int32_t head = 0; head < shape.query_heads; ++head) {
      const int64_t kv_head = head / group;
      HeadTokens tokens;
      if (!shadow.held().empty()) tokens = shadow.held()[static_cast<size_t>(layer)][static_cast<size_t>(kv_head)];
      const auto held = static_cast<int64_t>(tokens.positions.size());
      for (const FedToken& token : piece.rounded) {
        const int64_t numbers = at + kv_head * shape.head_size;
        tokens.append(token.position, token.keys.data() + numbers, token.values.data() + numbers, shape.head_size);
      }
      double largest = 1e-6;
      for (const float number : tokens.values) largest = std::max(largest, std::abs(double{number}));
      const PlainHead plain(shape, tokens);
      for (int64_t row = std::max<int64_t>(0, count - kCheckedRows); row < count; ++row) {
        const float* const query = piece.queries.data() +
                                   (row * stage_.layer_count() + layer) * shape.query_width() + head * shape.head_size;
        const PlainRow expected = plain.attend(query, piece.positions[static_cast<size_t>(row)], held + row + 1);
        const int64_t place = (first_row + row) * shape.query_heads + head;
        const float sum = sums[static_cast<size_t>(place)];
        expect(std::abs(sum - expected.log_sum_exp) <= kTolerance * (1.0 + std::abs(expected.log_sum_exp)), "s",
               piece.live->name, " layer ", layer, " head ", head, " row ", row, ": log-sum-exp ", sum, ", expected ",
               expected.log_sum_exp);
        for (int64_t i = 0; i < shape.head_size; ++i) {
          const float got = context[static_cast<size_t>(place * shape.head_size + i)];
          expect(std::abs(got - expected.context[static_cast<size_t>(i)]) <= kTolerance * largest, "s",
                 piece.live->name, " layer ", layer, " head ", head, " row ", row, " channel ", i, ": ", got,
                 ", expected ", expected.context[static_cast<size_t>(i)]);
        }
      }
    }
    first_row += count;
  }
}

void Machine::feed_one(const Operation& operation) {
  Live& live = pick(operation);
  const int64_t count = count_for(live.shadow, operation.choices[0]);
  if (count < 1) return;
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(live, count, operation));
  say("s", live.name, ": feed ", count, " from ", pieces[0].positions[0], pieces[0].continues ? ", continues" : "");
  (void)run_step(std::move(pieces));
}

void Machine::feed_several(const Operation& operation) {
  std::vector<Piece> pieces;
  std::string names;
  for (size_t index = 0; index < lives_.size() && index < 3; ++index) {
    Operation own = operation;
    own.which = static_cast<uint8_t>((operation.which + index) % lives_.size());
    for (uint8_t& choice : own.choices) choice = static_cast<uint8_t>(choice * (2 * index + 1));
    Live& live = pick(own);
    const int64_t count = count_for(live.shadow, own.choices[0]);
    if (count < 1) continue;
    pieces.push_back(make_piece(live, count, own));
    absl::StrAppend(&names, " s", live.name, ": ", count, pieces.back().continues ? " continues" : "");
  }
  if (pieces.empty()) return;
  say("feed in one step", names);
  (void)run_step(std::move(pieces));
}

void Machine::abandon(const Operation& operation) {
  Live& live = pick(operation);
  const int64_t count = count_for(live.shadow, operation.choices[0]);
  if (count < 1) return;
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(live, count, operation));
  const int32_t layers = operation.choices[3] % (stage_.layer_count() + 1);
  say("s", live.name, ": feed ", count, ", give up after ", layers, " layers");
  const Ledgers before = ledgers();
  foldkv_status status = FOLDKV_OK;
  Owned<foldkv_step> step = begin(pieces, nullptr, &status);
  if (!succeeded(status, sized<foldkv_error>(), before)) return;
  for (int32_t layer = 0; layer < layers; ++layer) {
    std::vector<float> context;
    std::vector<float> sums;
    expect(attend(step.get(), layer, pieces, &context, &sums) == FOLDKV_OK, "layer ", layer);
    check_outputs(layer, pieces, context, sums);
  }
  step.reset();
  check_unchanged(before);
}

void Machine::feed_twins(Live& first, Live& second, const Operation& operation) {
  const int64_t count = count_for(first.shadow, operation.choices[3]);
  if (count < 1) return;
  std::vector<Piece> pieces;
  pieces.push_back(make_piece(first, count, operation));
  pieces.push_back(pieces[0]);
  pieces[1].live = &second;
  second.busy = true;
  say("  both get ", count, " tokens from ", pieces[0].positions[0], pieces[0].continues ? ", continues" : "");
  if (!run_step(std::move(pieces))) return;
  const HeldTokens& one = first.shadow.held();
  const HeldTokens& other = second.shadow.held();
  for (size_t layer = 0; layer < one.size(); ++layer) {
    for (size_t head = 0; head < one[layer].size(); ++head) {
      expect(one[layer][head].positions == other[layer][head].positions &&
                 one[layer][head].keys == other[layer][head].keys &&
                 one[layer][head].values == other[layer][head].values,
             "s", first.name, " and s", second.name, " got the same and hold something else in layer ", layer, " head ",
             head);
    }
  }
}

}  // namespace foldkv::test::programs
