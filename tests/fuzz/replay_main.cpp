// A driver for fuzz targets without libFuzzer, which every build with tests has: it runs the files that it is given
// and then mutants of them. Mutant i depends on the seed and i alone, so that a run can be repeated.
//
// usage: <target> <mutants> <seed> <file or folder>...

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/oracle.h"
#include "tests/support/random.h"

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// A target may have its own, as with libFuzzer, which calls LLVMFuzzerMutate for what it does not do itself.
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace {

using Bytes = std::vector<uint8_t>;
namespace fuzz = foldkv::fuzz;
using foldkv::test::Random;

constexpr size_t kMaxBytes = size_t{1} << 16;

uint64_t mutator_seed = 0;

// The input that is being tried, as a file beside where the program was started. However the program dies, what broke
// it is there to be tried again alone; at the end it is removed.
class CurrentInput {
 public:
  explicit CurrentInput(const std::string& program)
      : path_(std::filesystem::path(program).filename().string() + ".failed"),
        file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644)) {
    fuzz::must(file_ >= 0, "the current input can be written");
  }
  ~CurrentInput() {
    close(file_);
    unlink(path_.c_str());
  }
  CurrentInput(const CurrentInput&) = delete;
  CurrentInput& operator=(const CurrentInput&) = delete;

  void write(const Bytes& input) const {
    fuzz::must(ftruncate(file_, 0) == 0 && pwrite(file_, input.data(), input.size(), 0) == std::ssize(input),
               "the current input is written");
  }

 private:
  std::string path_;
  int file_;
};

void run(const CurrentInput& current, const Bytes& input) {
  current.write(input);
  // An allocation of exactly the input's size, so that a sanitizer sees every read beyond its end.
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  fuzz::must(file.good(), "the file can be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Bytes mutant_of(const std::vector<Bytes>& corpus, Random& random) {
  Bytes mutant = random.pick(corpus);
  if (random.chance(0.125)) mutant = fuzz::splice(mutant, random.pick(corpus), random);
  const size_t size = std::min(mutant.size(), kMaxBytes);
  mutant.resize(kMaxBytes);
  mutator_seed = static_cast<uint64_t>(random.between(0, INT64_MAX - 1));
  const auto seed = static_cast<unsigned int>(random.between(0, UINT32_MAX));
  mutant.resize(LLVMFuzzerCustomMutator != nullptr ? LLVMFuzzerCustomMutator(mutant.data(), size, kMaxBytes, seed)
                                                   : LLVMFuzzerMutate(mutant.data(), size, kMaxBytes));
  return mutant;
}

}  // namespace

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  Random random(mutator_seed++);
  return fuzz::mutate(data, size, max_size, random);
}

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s <mutants> <seed> <file or folder>...\n", argv[0]);
    return 2;
  }
  std::vector<Bytes> corpus;
  for (int i = 3; i < argc; ++i) {
    for (const auto& path : files_of(argv[i])) corpus.push_back(read_file(path));
  }
  const CurrentInput current(argv[0]);
  for (const Bytes& input : corpus) run(current, input);
  const int64_t accepted_files = fuzz::accepted;
  std::printf("%zu files, %lld of them accepted\n", corpus.size(), static_cast<long long>(accepted_files));

  const int64_t mutants = std::strtoll(argv[1], nullptr, 10);
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  for (int64_t i = 0; i < mutants && !corpus.empty(); ++i) {
    Random random(seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(i));
    run(current, mutant_of(corpus, random));
  }
  std::printf("%lld mutants, %lld of them accepted\n", static_cast<long long>(mutants),
              static_cast<long long>(fuzz::accepted - accepted_files));
  if (mutants == 0) return 0;  // single inputs are tried
  const bool deep = accepted_files > 0 && fuzz::accepted > accepted_files;
  if (!deep) std::fprintf(stderr, "nothing that was tried got past the first checks: the corpus is of no use\n");
  return deep ? 0 : 1;
}
