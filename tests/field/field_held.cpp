#include <algorithm>

#include "tests/field/field_world.h"

namespace foldkv::test::field {
namespace {

std::vector<float> rows_of_head(const foldkv_sequence* sequence, const LayerShape& shape, int32_t layer, int32_t side,
                                int32_t kv_head, int64_t count) {
  std::vector<float> rows(static_cast<size_t>(count * shape.head_size));
  if (count == 0) return rows;
  foldkv_tensor output{};
  output.data = rows.data();
  output.dtype = FOLDKV_F32;
  output.rank = 3;
  output.shape[0] = count;
  output.shape[1] = 1;
  output.shape[2] = shape.head_size;
  auto options = sized<foldkv_rebuild_options>();
  options.layer = layer;
  options.side = side;
  options.one_head = 1;
  options.kv_head = kv_head;
  foldkv_error error = sized<foldkv_error>();
  REQUIRE_MESSAGE(foldkv_sequence_rebuild(sequence, &options, &output, &error) == FOLDKV_OK, error.message);
  return rows;
}

// The rows of a piece, as one KV head sees them.
void append_piece(const World& world, const Piece& piece, size_t layer, int64_t head, int64_t first_position,
                  HeadTokens& tokens) {
  const LayerShape& shape = world.layers()[layer];
  for (int64_t row = 0; row < piece.count; ++row) {
    const int64_t at = (piece.first + row) * shape.key_width() + head * shape.head_size;
    const int64_t position = piece.positions.empty() ? first_position + row : piece.positions[static_cast<size_t>(row)];
    tokens.append(position, piece.tokens->key[layer].data() + at, piece.tokens->value[layer].data() + at,
                  shape.head_size);
  }
}

// Outputs of a piece's rows in one layer; the last `piece.count` tokens of every head are the piece's own.
std::vector<double> expected_context(const LayerShape& shape, const Piece& piece, size_t layer,
                                     const std::vector<HeadTokens>& heads) {
  std::vector<PlainHead> plain;
  for (const HeadTokens& tokens : heads) plain.emplace_back(shape, tokens);
  std::vector<double> expected;
  for (int64_t row = 0; row < piece.count; ++row) {
    for (int64_t head = 0; head < shape.query_heads; ++head) {
      const auto kv_head = static_cast<size_t>(head * shape.kv_heads / shape.query_heads);
      const std::vector<int64_t>& positions = heads[kv_head].positions;
      const int64_t seen = std::ssize(positions) - piece.count + row + 1;
      const float* query =
          piece.tokens->query[layer].data() + (piece.first + row) * shape.query_width() + head * shape.head_size;
      const PlainRow result = plain[kv_head].attend(query, positions[static_cast<size_t>(seen - 1)], seen);
      expected.insert(expected.end(), result.context.begin(), result.context.end());
    }
  }
  return expected;
}

}  // namespace

std::vector<int64_t> kept_positions(const foldkv_sequence* sequence, int32_t layer, int32_t kv_head) {
  int64_t count = 0;
  REQUIRE(foldkv_sequence_get_kept_positions(sequence, layer, kv_head, nullptr, 0, &count, nullptr) == FOLDKV_OK);
  std::vector<int64_t> positions(static_cast<size_t>(count));
  if (count == 0) return positions;
  REQUIRE(foldkv_sequence_get_kept_positions(sequence, layer, kv_head, positions.data(), count, &count, nullptr) ==
          FOLDKV_OK);
  return positions;
}

HeadTokens held_tokens(const World& world, const foldkv_sequence* sequence, int32_t layer, int32_t kv_head) {
  const LayerShape& shape = world.layers()[static_cast<size_t>(layer)];
  HeadTokens tokens;
  tokens.positions = kept_positions(sequence, layer, kv_head);
  const int64_t count = std::ssize(tokens.positions);
  tokens.keys = rows_of_head(sequence, shape, layer, FOLDKV_KEYS, kv_head, count);
  tokens.values = rows_of_head(sequence, shape, layer, FOLDKV_VALUES, kv_head, count);
  return tokens;
}

std::vector<float> held_numbers(const World& world, const foldkv_sequence* sequence) {
  std::vector<float> all;
  for (int32_t layer = 0; layer < std::ssize(world.layers()); ++layer) {
    for (int32_t head = 0; head < world.layers()[static_cast<size_t>(layer)].kv_heads; ++head) {
      const HeadTokens tokens = held_tokens(world, sequence, layer, head);
      all.insert(all.end(), tokens.positions.begin(), tokens.positions.end());
      all.insert(all.end(), tokens.keys.begin(), tokens.keys.end());
      all.insert(all.end(), tokens.values.begin(), tokens.values.end());
    }
  }
  return all;
}

double error_of_feeding(const World& world, const Piece& piece) {
  const int64_t first_position = stats_of(piece.sequence).next_position;
  std::vector<std::vector<double>> expected;
  for (size_t layer = 0; layer < world.layers().size(); ++layer) {
    std::vector<HeadTokens> heads;
    for (int32_t head = 0; head < world.layers()[layer].kv_heads; ++head) {
      heads.push_back(held_tokens(world, piece.sequence, static_cast<int32_t>(layer), head));
      append_piece(world, piece, layer, head, first_position, heads.back());
    }
    expected.push_back(expected_context(world.layers()[layer], piece, layer, heads));
  }
  const Outputs outputs = feed(world, {piece});
  double error = 0.0;
  for (size_t layer = 0; layer < expected.size(); ++layer) {
    error = std::max(error, largest_error(outputs.context[layer], expected[layer]));
  }
  return error;
}

std::vector<double> true_context(const LayerShape& layer, const Tokens& tokens, size_t index, int64_t first,
                                 int64_t count) {
  std::vector<HeadTokens> heads(static_cast<size_t>(layer.kv_heads));
  for (int64_t head = 0; head < layer.kv_heads; ++head) {
    for (int64_t token = 0; token < first + count; ++token) {
      const int64_t at = token * layer.key_width() + head * layer.head_size;
      heads[static_cast<size_t>(head)].append(token, tokens.key[index].data() + at, tokens.value[index].data() + at,
                                              layer.head_size);
    }
  }
  const Piece piece{nullptr, &tokens, first, count, false, {}};
  return expected_context(layer, piece, index, heads);
}

}  // namespace foldkv::test::field
