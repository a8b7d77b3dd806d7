#include "samples/lab/text_samples.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tests/samples/lab/stories.h"
#include "tests/support/data.h"

namespace foldkv_lab::test {
namespace {

std::string write_file(const foldkv::test::TemporaryFolder& folder, const std::string& name, int repeats) {
  const std::filesystem::path path = folder.path() / name;
  std::ofstream file(path);
  for (int i = 0; i < repeats; ++i) file << name << " number " << i << ". ";
  return path.string();
}

TEST_CASE("samples have their length, begin with the begin token and go on where the last one ended") {
  const LanguageModel model = load_stories();
  const foldkv::test::TemporaryFolder folder;
  const std::string path = write_file(folder, "only", 100);
  const auto samples = sample_texts({path}, *model.tokenizer, 64, 1000);
  REQUIRE_MESSAGE(samples.ok(), samples.status().message());
  std::vector<Token> joined;
  for (const TextSample& sample : *samples) {
    REQUIRE(sample.tokens.size() == 64);
    CHECK(sample.tokens[0] == 1);
    CHECK(sample.source == path);
    joined.insert(joined.end(), sample.tokens.begin() + 1, sample.tokens.end());
  }
  std::vector<Token> all = *model.tokenizer->encode(foldkv::test::read_text(path));
  CHECK(all.size() - joined.size() < 63);
  all.resize(joined.size());
  CHECK(joined == all);
}

TEST_CASE("a maximum is shared out evenly") {
  const LanguageModel model = load_stories();
  const foldkv::test::TemporaryFolder folder;
  const std::vector<std::string> paths = {write_file(folder, "short", 10), write_file(folder, "long", 200),
                                          write_file(folder, "tiny", 1), write_file(folder, "longer", 400)};
  const auto all = sample_texts(paths, *model.tokenizer, 64, 100000);
  const auto some = sample_texts(paths, *model.tokenizer, 64, 9);
  REQUIRE(all.ok());
  REQUIRE(some.ok());
  CHECK(some->size() == 9);
  std::vector<int> counts(paths.size(), 0);
  std::vector<int> available(paths.size(), 0);
  for (size_t i = 0; i < paths.size(); ++i) {
    for (const TextSample& sample : *some) counts[i] += sample.source == paths[i] ? 1 : 0;
    for (const TextSample& sample : *all) available[i] += sample.source == paths[i] ? 1 : 0;
  }
  CHECK(available[2] == 0);
  CHECK(counts[0] == std::min(available[0], 3));
  CHECK(counts[1] >= 3);
  CHECK(counts[1] + counts[0] + counts[3] == 9);
  CHECK(std::abs(counts[1] - counts[3]) <= 1);
}

TEST_CASE("nothing to run") {
  const LanguageModel model = load_stories();
  const foldkv::test::TemporaryFolder folder;
  const std::string path = write_file(folder, "small", 1);
  CHECK_FALSE(sample_texts({path}, *model.tokenizer, 64, 10).ok());
  CHECK_FALSE(sample_texts({path}, *model.tokenizer, 1, 10).ok());
  CHECK_FALSE(sample_texts({path}, *model.tokenizer, 8, 0).ok());
  CHECK_FALSE(sample_texts({(folder.path() / "absent").string()}, *model.tokenizer, 8, 1).ok());
}

}  // namespace
}  // namespace foldkv_lab::test
