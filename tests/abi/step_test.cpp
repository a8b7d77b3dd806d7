#include "tests/abi/api_fixture.h"

namespace foldkv::test {
namespace {

TEST_CASE("feeds are checked and named") {
  const Api api;
  foldkv_step* step = nullptr;
  const auto refused = [&](foldkv_status status, const std::string& argument, const auto& change) {
    auto feed = sized<foldkv_feed>();
    feed.sequence = api.sequence;
    feed.token_count = 2;
    change(feed);
    check_refused(status, argument, [&](foldkv_error* error) {
      return foldkv_step_begin(api.runtime, &feed, 1, nullptr, &step, error);
    });
    CHECK(step == nullptr);
  };
  refused(FOLDKV_E_ARGUMENT, "feeds[0].sequence", [](auto& feed) { feed.sequence = nullptr; });
  refused(FOLDKV_E_ARGUMENT, "feeds[0].token_count", [](auto& feed) { feed.token_count = 0; });
  refused(FOLDKV_E_ARGUMENT, "feeds[0].token_count", [](auto& feed) { feed.token_count = INT64_MAX; });
  refused(FOLDKV_E_ARGUMENT, "feeds[0].flags", [](auto& feed) { feed.flags = 2; });
  refused(FOLDKV_E_ARGUMENT, "feeds[0].struct_size", [](auto& feed) { feed.struct_size = 0; });
  refused(FOLDKV_E_BUDGET, "feeds[0]", [](auto& feed) { feed.token_count = 10'000'000; });
  const int64_t negative[2] = {-1, 0};
  const int64_t falling[2] = {7, 6};
  const int64_t beyond[2] = {0, int64_t{1} << 31};
  for (const int64_t* positions : {negative, falling, beyond}) {
    refused(FOLDKV_E_ARGUMENT, "feeds[0].positions", [&](auto& feed) { feed.positions = positions; });
  }
  auto feed = sized<foldkv_feed>();
  feed.sequence = api.sequence;
  feed.token_count = 1;
  for (int32_t count : {0, -1}) {
    check_refused(FOLDKV_E_ARGUMENT, "feed_count", [&](foldkv_error* error) {
      return foldkv_step_begin(api.runtime, &feed, count, nullptr, &step, error);
    });
  }
  check_refused(FOLDKV_E_ARGUMENT, "feeds", [&](foldkv_error* error) {
    return foldkv_step_begin(api.runtime, nullptr, 1, nullptr, &step, error);
  });
  auto options = sized<foldkv_step_options>();
  options.input = 3;
  check_refused(FOLDKV_E_ARGUMENT, "options.input", [&](foldkv_error* error) {
    return foldkv_step_begin(api.runtime, &feed, 1, &options, &step, error);
  });
  options.input = 0;
  options.output = -1;
  check_refused(FOLDKV_E_ARGUMENT, "options.output", [&](foldkv_error* error) {
    return foldkv_step_begin(api.runtime, &feed, 1, &options, &step, error);
  });
}

class OpenStep {
 public:
  OpenStep(const Api& api, int32_t input, int64_t tokens) {
    auto feed = sized<foldkv_feed>();
    feed.sequence = api.sequence;
    feed.token_count = tokens;
    auto options = sized<foldkv_step_options>();
    options.input = input;
    REQUIRE(foldkv_step_begin(api.runtime, &feed, 1, &options, &step, nullptr) == FOLDKV_OK);
  }
  ~OpenStep() { foldkv_step_release(step); }
  OpenStep(const OpenStep&) = delete;
  OpenStep& operator=(const OpenStep&) = delete;

  foldkv_step* step = nullptr;
};

// One number of a wrong tensor at a time.
template <typename Select>
void check_tensor_refused(foldkv_step* step, const foldkv_attend& good, const std::string& name,
                          const Select& select) {
  const auto refused = [&](const std::string& field, const auto& change) {
    foldkv_attend attend = good;
    change(select(attend));
    check_refused(FOLDKV_E_ARGUMENT, name + "." + field,
                  [&](foldkv_error* error) { return foldkv_step_attend(step, 0, &attend, error); });
  };
  refused("shape", [](foldkv_tensor& tensor) { tensor.shape[0] += 1; });
  refused("shape", [](foldkv_tensor& tensor) { tensor.shape[tensor.rank - 1] -= 1; });
  refused("shape", [](foldkv_tensor& tensor) { tensor.shape[0] = -3; });
  refused("dtype", [](foldkv_tensor& tensor) { tensor.dtype = 0; });
  refused("device", [](foldkv_tensor& tensor) { tensor.device = FOLDKV_DEVICE; });
  refused("rank", [](foldkv_tensor& tensor) { tensor.rank = 0; });
  refused("reserved", [](foldkv_tensor& tensor) { tensor.reserved = 1; });
  refused("strides", [](foldkv_tensor& tensor) { tensor.strides[tensor.rank - 1] = 2; });
  refused("strides", [](foldkv_tensor& tensor) {
    int64_t stride = 1;
    for (int32_t axis = tensor.rank - 1; axis > 0; --axis) {
      tensor.strides[axis] = stride;
      stride *= tensor.shape[axis];
    }
    tensor.strides[0] = stride - 1;
  });
  refused("data", [](foldkv_tensor& tensor) { tensor.data = static_cast<char*>(tensor.data) + 1; });
}

TEST_CASE("tensors of attend are checked field by field, for both kinds of input") {
  const Api api;
  const int64_t tokens = 3;
  std::vector<float> hidden = some_numbers(tokens * kHidden, 1);
  std::vector<float> query = some_numbers(tokens * kQueryHeads * kHeadSize, 2);
  std::vector<float> key = some_numbers(tokens * kKvHeads * kHeadSize, 3);
  std::vector<float> value = some_numbers(tokens * kKvHeads * kHeadSize, 4);
  std::vector<float> output(query.size(), NAN);
  std::vector<float> sums(static_cast<size_t>(tokens * kQueryHeads), NAN);
  auto attend = sized<foldkv_attend>();
  attend.hidden = tensor_of(hidden, {tokens, kHidden});
  attend.query = tensor_of(query, {tokens, kQueryHeads, kHeadSize});
  attend.key = tensor_of(key, {tokens, kKvHeads, kHeadSize});
  attend.value = tensor_of(value, {tokens, kKvHeads, kHeadSize});
  attend.output = tensor_of(output, {tokens, kQueryHeads, kHeadSize});
  attend.log_sum_exp = tensor_of(sums, {tokens, kQueryHeads});
  {
    const OpenStep open(api, FOLDKV_INPUT_HIDDEN, tokens);
    check_tensor_refused(open.step, attend, "hidden", [](auto& a) -> foldkv_tensor& { return a.hidden; });
    check_tensor_refused(open.step, attend, "output", [](auto& a) -> foldkv_tensor& { return a.output; });
    check_tensor_refused(open.step, attend, "log_sum_exp", [](auto& a) -> foldkv_tensor& { return a.log_sum_exp; });
  }
  const OpenStep open(api, FOLDKV_INPUT_QKV, tokens);
  check_tensor_refused(open.step, attend, "query", [](auto& a) -> foldkv_tensor& { return a.query; });
  check_tensor_refused(open.step, attend, "key", [](auto& a) -> foldkv_tensor& { return a.key; });
  check_tensor_refused(open.step, attend, "value", [](auto& a) -> foldkv_tensor& { return a.value; });
  foldkv_attend half = attend;
  half.log_sum_exp.dtype = FOLDKV_F16;
  check_refused(FOLDKV_E_ARGUMENT, "log_sum_exp.dtype",
                [&](foldkv_error* error) { return foldkv_step_attend(open.step, 0, &half, error); });
  for (int32_t layer : {-1, kLayers}) {
    check_refused(FOLDKV_E_ARGUMENT, "layer",
                  [&](foldkv_error* error) { return foldkv_step_attend(open.step, layer, &attend, error); });
  }
  check_refused(FOLDKV_E_STATE, "layer",
                [&](foldkv_error* error) { return foldkv_step_attend(open.step, 1, &attend, error); });
  check_refused(FOLDKV_E_STATE, "step", [&](foldkv_error* error) { return foldkv_step_commit(open.step, error); });
  CHECK(std::isnan(output[0]));
  CHECK(foldkv_step_attend(open.step, 0, &attend, nullptr) == FOLDKV_OK);
  CHECK(std::isfinite(output[0]));
  CHECK(std::isfinite(sums[0]));
}

TEST_CASE("spaced rows, flat heads and 16-bit tensors are taken; log-sum-exp of one key is its score") {
  const Api api;
  std::vector<float> query = some_numbers(kQueryHeads * kHeadSize, 2);
  std::vector<float> key = some_numbers(kKvHeads * kHeadSize, 3);
  std::vector<float> value = some_numbers(kKvHeads * kHeadSize, 4);
  std::vector<float> output(query.size(), NAN);
  std::vector<float> sums(kQueryHeads, NAN);
  const OpenStep open(api, FOLDKV_INPUT_QKV, 1);
  auto attend = sized<foldkv_attend>();
  attend.query = tensor_of(query, {1, kQueryHeads * kHeadSize});
  attend.key = tensor_of(key, {1, kKvHeads, kHeadSize});
  attend.key.strides[0] = 1000;
  attend.key.strides[1] = kHeadSize;
  attend.key.strides[2] = 1;
  attend.value = tensor_of(value, {1, kKvHeads, kHeadSize});
  std::vector<uint16_t> halves(output.size(), 0xffff);
  attend.output = tensor_of(output, {1, kQueryHeads, kHeadSize});
  attend.output.data = halves.data();
  attend.output.dtype = FOLDKV_F16;
  attend.log_sum_exp = tensor_of(sums, {1, kQueryHeads});
  REQUIRE(foldkv_step_attend(open.step, 0, &attend, nullptr) == FOLDKV_OK);
  for (size_t head = 0; head < kQueryHeads; ++head) {
    double score = 0.0;
    for (size_t i = 0; i < kHeadSize; ++i) {
      score += double{query[head * kHeadSize + i]} * key[head / 2 * kHeadSize + i];
    }
    CHECK(sums[head] == doctest::Approx(score / std::sqrt(8.0)).epsilon(2e-3));
  }
  CHECK(halves[0] != 0xffff);
}

}  // namespace
}  // namespace foldkv::test
