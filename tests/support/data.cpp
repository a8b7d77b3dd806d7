#include "tests/support/data.h"

#include <cstdlib>
#include <fstream>
#include <ios>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace foldkv::test {

std::filesystem::path data_path(std::string_view relative) {
  std::filesystem::path path = std::filesystem::path(FOLDKV_TESTS_DIR) / "data" / relative;
  if (!std::filesystem::exists(path)) throw std::runtime_error("no test data at " + path.string());
  return path;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) throw std::runtime_error("cannot read " + path.string());
  return text;
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "foldkv-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make the folder " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace foldkv::test
