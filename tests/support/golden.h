#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

// Expected values of tests/golden: one JSON file for each subject, with `about`, `tolerance` and `cases`.
namespace foldkv::test {

// The environment's FOLDKV_GOLDEN_DIR when set and not empty, else the copy in the tree.
[[nodiscard]] std::filesystem::path golden_dir();

// Reads golden_dir()/<name>.json. Throws with the path when it cannot be read, is not of that form or has no case.
[[nodiscard]] nlohmann::json read_golden(std::string_view name);

// All numbers of nested arrays, the last index fastest. Throws when there is anything else in them.
[[nodiscard]] std::vector<double> numbers(const nlohmann::json& array);
[[nodiscard]] std::vector<float> numbers_f32(const nlohmann::json& array);

}  // namespace foldkv::test
