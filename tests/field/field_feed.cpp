#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/field/field_world.h"

namespace foldkv::test::field {
namespace {

foldkv_tensor tensor_of(std::vector<float>& rows, int64_t count, int64_t width) {
  foldkv_tensor tensor{};
  tensor.data = rows.data();
  tensor.dtype = FOLDKV_F32;
  tensor.rank = 2;
  tensor.shape[0] = count;
  tensor.shape[1] = width;
  return tensor;
}

// Rows of all pieces, one after the other.
std::vector<float> gathered(const std::vector<Piece>& pieces, std::vector<std::vector<float>> Tokens::*side,
                            size_t layer, int64_t width) {
  std::vector<float> rows;
  for (const Piece& piece : pieces) {
    REQUIRE(piece.first + piece.count <= piece.tokens->count);
    const float* first = (piece.tokens->*side)[layer].data() + piece.first * width;
    rows.insert(rows.end(), first, first + piece.count * width);
  }
  return rows;
}

// The bits of numbers that the format holds, none of them tiny.
std::vector<uint16_t> short_numbers(const std::vector<float>& numbers, int32_t dtype) {
  std::vector<uint16_t> result;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<uint32_t>(number);
    const uint32_t sign = bits >> 16 & 0x8000U;
    const uint32_t half = number == 0.0F ? sign : sign | ((bits & 0x7fffffffU) - (112U << 23)) >> 13;
    result.push_back(static_cast<uint16_t>(dtype == FOLDKV_F16 ? half : bits >> 16));
  }
  return result;
}

Owned<foldkv_step> begin(const World& world, const std::vector<Piece>& pieces, foldkv_error* error) {
  std::vector<foldkv_feed> feeds;
  for (const Piece& piece : pieces) {
    feeds.push_back(sized<foldkv_feed>());
    feeds.back().sequence = piece.sequence;
    feeds.back().token_count = piece.count;
    feeds.back().flags = piece.continues ? FOLDKV_FEED_CONTINUES : 0;
    if (!piece.positions.empty()) feeds.back().positions = piece.positions.data();
  }
  foldkv_step* step = nullptr;
  (void)foldkv_step_begin(world.runtime(), feeds.data(), static_cast<int32_t>(feeds.size()), nullptr, &step, error);
  return Owned<foldkv_step>(step);
}

foldkv_status attend(const World& world, foldkv_step* step, const std::vector<Piece>& pieces, size_t index,
                     int32_t query_dtype, Outputs* outputs, foldkv_error* error) {
  const LayerShape& layer = world.layers()[index];
  int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.count;
  std::vector<float> query = gathered(pieces, &Tokens::query, index, layer.query_width());
  std::vector<float> key = gathered(pieces, &Tokens::key, index, layer.key_width());
  std::vector<float> value = gathered(pieces, &Tokens::value, index, layer.key_width());
  std::vector<float> context(query.size(), NAN);
  std::vector<float> sums(static_cast<size_t>(rows * layer.query_heads), NAN);
  auto request = sized<foldkv_attend>();
  request.query = tensor_of(query, rows, layer.query_width());
  const std::vector<uint16_t> short_query = short_numbers(query, query_dtype);
  request.query.dtype = query_dtype;
  if (query_dtype != FOLDKV_F32) request.query.data = const_cast<uint16_t*>(short_query.data());
  request.key = tensor_of(key, rows, layer.key_width());
  request.value = tensor_of(value, rows, layer.key_width());
  request.output = tensor_of(context, rows, layer.query_width());
  request.log_sum_exp = tensor_of(sums, rows, layer.query_heads);
  const foldkv_status status = foldkv_step_attend(step, static_cast<int32_t>(index), &request, error);
  outputs->context.push_back(std::move(context));
  outputs->log_sum_exp.push_back(std::move(sums));
  return status;
}

foldkv_status whole_step(const World& world, const std::vector<Piece>& pieces, int32_t query_dtype, Outputs* outputs,
                         foldkv_error* error) {
  *outputs = Outputs{};
  const auto step = begin(world, pieces, error);
  if (step == nullptr) return error->status;
  for (size_t index = 0; index < world.layers().size(); ++index) {
    const foldkv_status status = attend(world, step.get(), pieces, index, query_dtype, outputs, error);
    if (status != FOLDKV_OK) return status;
  }
  return foldkv_step_commit(step.get(), error);
}

void join(Outputs& all, const Outputs& more) {
  all.context.resize(more.context.size());
  all.log_sum_exp.resize(more.log_sum_exp.size());
  for (size_t layer = 0; layer < more.context.size(); ++layer) {
    all.context[layer].insert(all.context[layer].end(), more.context[layer].begin(), more.context[layer].end());
    all.log_sum_exp[layer].insert(all.log_sum_exp[layer].end(), more.log_sum_exp[layer].begin(),
                                  more.log_sum_exp[layer].end());
  }
}

}  // namespace

foldkv_status try_feed(const World& world, const std::vector<Piece>& pieces, Outputs* outputs, foldkv_error* error) {
  return whole_step(world, pieces, FOLDKV_F32, outputs, error);
}

Outputs feed(const World& world, const std::vector<Piece>& pieces) {
  return feed_queries_as(FOLDKV_F32, world, pieces);
}

Outputs feed_queries_as(int32_t dtype, const World& world, const std::vector<Piece>& pieces) {
  foldkv_error error = sized<foldkv_error>();
  Outputs outputs;
  REQUIRE_MESSAGE(whole_step(world, pieces, dtype, &outputs, &error) == FOLDKV_OK, error.argument, " ", error.message);
  return outputs;
}

Outputs feed_in_chunks(const World& world, foldkv_sequence* sequence, const Tokens& tokens, int64_t first,
                       int64_t count, int64_t chunk) {
  Outputs all;
  for (int64_t token = first; token < first + count; token += chunk) {
    const int64_t size = std::min(chunk, first + count - token);
    join(all, feed(world, {{sequence, &tokens, token, size, token + size < first + count, {}}}));
  }
  return all;
}

Outputs generate(const World& world, foldkv_sequence* sequence, const Tokens& tokens, int64_t first, int64_t count) {
  Outputs all;
  for (int64_t token = first; token < first + count; ++token) {
    join(all, feed(world, {{sequence, &tokens, token, 1, false, {}}}));
  }
  return all;
}

}  // namespace foldkv::test::field
