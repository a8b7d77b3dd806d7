#include "tests/support/golden.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/support/data.h"

namespace foldkv::test {
namespace {

void append_numbers(const nlohmann::json& value, std::vector<double>& out) {
  if (value.is_array()) {
    for (const nlohmann::json& element : value) append_numbers(element, out);
  } else if (value.is_number()) {
    out.push_back(value.get<double>());
  } else {
    throw std::runtime_error("expected a number or an array of numbers, got " + value.dump());
  }
}

}  // namespace

std::filesystem::path golden_dir() {
  const char* set = std::getenv("FOLDKV_GOLDEN_DIR");
  if (set != nullptr && *set != '\0') return set;
  return std::filesystem::path(FOLDKV_TESTS_DIR) / "golden";
}

nlohmann::json read_golden(std::string_view name) {
  const std::filesystem::path path = golden_dir() / (std::string(name) + ".json");
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(read_text(path));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
  if (!file.is_object() || !file.contains("tolerance") || !file.contains("cases") || !file["cases"].is_array() ||
      file["cases"].empty()) {
    throw std::runtime_error(path.string() + ": no tolerance, or no cases");
  }
  return file;
}

std::vector<double> numbers(const nlohmann::json& array) {
  std::vector<double> result;
  append_numbers(array, result);
  return result;
}

std::vector<float> numbers_f32(const nlohmann::json& array) {
  const std::vector<double> wide = numbers(array);
  std::vector<float> result;
  result.reserve(wide.size());
  for (double number : wide) result.push_back(static_cast<float>(number));
  return result;
}

}  // namespace foldkv::test
