#include <limits>
#include <string>

#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_options.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"

namespace foldkv::abi {
namespace {

StatusOr<Feed> read_feed(const foldkv_feed& source, const std::string& name) {
  FOLDKV_RETURN_IF_ERROR(require(source.sequence, name + ".sequence"));
  if ((source.flags & ~FOLDKV_FEED_CONTINUES) != 0) {
    return argument_error(name + ".flags", absl::StrCat("is ", source.flags, ", expected 0 or FOLDKV_FEED_CONTINUES"));
  }
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (source.token_count < 1 || source.token_count > kLargest) {
    return argument_error(name + ".token_count",
                          absl::StrCat("is ", source.token_count, ", expected 1 to ", kLargest));
  }
  Feed feed;
  feed.sequence = source.sequence->object;
  feed.token_count = source.token_count;
  feed.continues = (source.flags & FOLDKV_FEED_CONTINUES) != 0;
  for (int64_t token = 0; source.positions != nullptr && token < source.token_count; ++token) {
    const int64_t position = source.positions[token];
    if (position < 0 || position > kLargest) {
      return argument_error(name + ".positions",
                            absl::StrCat("[", token, "] is ", position, ", expected 0 to ", kLargest));
    }
    feed.positions.push_back(static_cast<int32_t>(position));
  }
  return feed;
}

StatusOr<std::unique_ptr<Step>> begin_step(const foldkv_runtime& runtime, const foldkv_feed* feeds,
                                           int32_t feed_count, const foldkv_step_options* options) {
  if (feed_count < 1) return argument_error("feed_count", absl::StrCat("is ", feed_count, ", expected 1 or more"));
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<foldkv_feed> sources, read_structs(feeds, feed_count, "feeds"));
  std::vector<Feed> list;
  for (size_t index = 0; index < sources.size(); ++index) {
    FOLDKV_ASSIGN_OR_RETURN(Feed feed, read_feed(sources[index], absl::StrCat("feeds[", index, "]")));
    list.push_back(std::move(feed));
  }
  FOLDKV_ASSIGN_OR_RETURN(const StepRules rules, read_step_options(options, "options", list.front().sequence->model()));
  return Step::begin(runtime.object, std::move(list), rules);
}

StatusOr<AttendInput> read_attend(const Step& step, int64_t layer, const foldkv_attend& source) {
  const LayerRules& rules = step.model().layer(layer);
  const int64_t hidden = step.model().hidden_size();
  const int64_t rows = step.rows();
  AttendInput input;
  if (step.rules().hidden_input) {
    FOLDKV_ASSIGN_OR_RETURN(input.hidden, read_tensor(source.hidden, {"hidden", {rows, hidden}}));
  } else {
    FOLDKV_ASSIGN_OR_RETURN(input.query,
                            read_tensor(source.query, {"query", {rows, rules.query_heads, rules.head_size}}));
    FOLDKV_ASSIGN_OR_RETURN(input.key, read_tensor(source.key, {"key", {rows, rules.kv_heads, rules.head_size}}));
    FOLDKV_ASSIGN_OR_RETURN(input.value,
                            read_tensor(source.value, {"value", {rows, rules.kv_heads, rules.head_size}}));
  }
  if (step.rules().projected_output) {
    FOLDKV_ASSIGN_OR_RETURN(input.output, read_output_tensor(source.output, {"output", {rows, hidden}}));
  } else {
    FOLDKV_ASSIGN_OR_RETURN(
        input.output, read_output_tensor(source.output, {"output", {rows, rules.query_heads, rules.head_size}}));
  }
  if (source.log_sum_exp.data != nullptr) {
    FOLDKV_ASSIGN_OR_RETURN(input.log_sum_exp,
                            read_output_tensor(source.log_sum_exp, {"log_sum_exp", {rows, rules.query_heads}, true}));
  }
  return input;
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_step_begin(foldkv_runtime* runtime, const foldkv_feed* feeds, int32_t feed_count,
                                const foldkv_step_options* options, foldkv_step** step, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(runtime, "runtime"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(step, "step"));
    FOLDKV_ASSIGN_OR_RETURN(std::unique_ptr<foldkv::Step> begun,
                            foldkv::abi::begin_step(*runtime, feeds, feed_count, options));
    *step = new foldkv_step{std::move(begun)};
    return absl::OkStatus();
  });
}

foldkv_status foldkv_step_attend(foldkv_step* step, int32_t layer, const foldkv_attend* attend,
                                 foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(step, "step"));
    foldkv::Step& object = *step->object;
    if (layer < 0 || layer >= object.model().layer_count()) {
      return foldkv::argument_error(
          "layer", absl::StrCat("is ", layer, ", expected 0 to ", object.model().layer_count() - 1));
    }
    FOLDKV_ASSIGN_OR_RETURN(const foldkv_attend source, foldkv::abi::read_struct(attend, "attend"));
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::AttendInput input, foldkv::abi::read_attend(object, layer, source));
    return object.attend(layer, input);
  });
}

foldkv_status foldkv_step_commit(foldkv_step* step, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(step, "step"));
    return step->object->commit();
  });
}

void foldkv_step_release(foldkv_step* step) { delete step; }

}  // extern "C"
