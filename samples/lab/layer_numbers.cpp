#include "samples/lab/layer_numbers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "foldkv/foldkv.h"
#include "nlohmann/json.hpp"
#include "samples/lab/mapped_file.h"
#include "samples/lab/status_macros.h"

namespace foldkv_lab {
namespace {

using Json = nlohmann::json;

// JSON has no word for infinities and what is no number: all that it can write is finite.
absl::StatusOr<std::vector<double>> read_list(const Json& file, const char* name, int64_t layers,
                                              bool may_be_negative) {
  const auto list = file.find(name);
  if (list == file.end()) return std::vector<double>();
  const bool numbers =
      list->is_array() && std::all_of(list->begin(), list->end(), [&](const Json& number) {
        return number.is_number() && (may_be_negative || number.get<double>() >= 0.0);
      });
  if (!numbers) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is no list of numbers", may_be_negative ? "" : " of 0 or more"));
  }
  if (static_cast<int64_t>(list->size()) != layers) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", list->size(), " layers, the model ", layers));
  }
  return list->get<std::vector<double>>();
}

absl::StatusOr<LayerNumbers> read_numbers(const std::string& text, int64_t layers) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object()) return absl::InvalidArgumentError("is no JSON object");
  LayerNumbers numbers;
  LAB_ASSIGN_OR_RETURN(numbers.sensitivities, read_list(file, "value_sensitivities", layers, false));
  LAB_ASSIGN_OR_RETURN(numbers.importances, read_list(file, "importances", layers, false));
  LAB_ASSIGN_OR_RETURN(numbers.similarities, read_list(file, "similarities", layers, true));
  if (numbers.sensitivities.empty() && numbers.importances.empty() && numbers.similarities.empty()) {
    return absl::InvalidArgumentError("holds none of value_sensitivities, importances and similarities");
  }
  return numbers;
}

}  // namespace

const std::vector<double>* LayerNumbers::for_allocator(int32_t allocator) const {
  switch (allocator) {
    case FOLDKV_LAYERS_RIPPLE: return &sensitivities;
    case FOLDKV_LAYERS_IMPORTANCE: return &importances;
    case FOLDKV_LAYERS_EPISODE: return &similarities;
    default: return nullptr;
  }
}

absl::StatusOr<LayerNumbers> load_layer_numbers(const std::string& path, int64_t layers) {
  LAB_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  absl::StatusOr<LayerNumbers> numbers = read_numbers(text, layers);
  if (numbers.ok()) return numbers;
  return absl::InvalidArgumentError(absl::StrCat("--layers: ", path, ": ", numbers.status().message()));
}

}  // namespace foldkv_lab
