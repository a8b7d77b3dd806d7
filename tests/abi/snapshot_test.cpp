#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"
#include "tests/support/data.h"

// Saving and restoring sequences.
namespace foldkv::test {
namespace {

using Buffer = std::vector<unsigned char>;

struct SavedApi : Api {
  SavedApi() { feed(120, 1); }

  [[nodiscard]] Buffer saved(const foldkv_save_options* options = nullptr) const {
    size_t size = 0;
    REQUIRE(foldkv_sequence_save(sequence, options, nullptr, 0, &size, nullptr) == FOLDKV_OK);
    Buffer bytes(size);
    REQUIRE(foldkv_sequence_save(sequence, options, bytes.data(), size, &size, nullptr) == FOLDKV_OK);
    REQUIRE(size == bytes.size());
    return bytes;
  }
  [[nodiscard]] foldkv_status restore(const Buffer& bytes, foldkv_sequence** restored,
                                      foldkv_error* error = nullptr) const {
    return foldkv_sequence_restore(runtime, model, profile, nullptr, bytes.data(), bytes.size(), restored, error);
  }
  [[nodiscard]] foldkv_status restore_file(const std::filesystem::path& path, foldkv_sequence** restored,
                                           foldkv_error* error = nullptr) const {
    int32_t count = 0;
    return foldkv_sequences_restore_file(runtime, model, profile, nullptr, path.c_str(), restored, 1, &count, error);
  }
};

foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  auto stats = sized<foldkv_sequence_stats>();
  REQUIRE(foldkv_sequence_get_stats(sequence, &stats, nullptr) == FOLDKV_OK);
  return stats;
}

// A stream of the host that gives up after so many bytes.
struct Stream {
  Buffer bytes;
  size_t limit = SIZE_MAX;
  size_t place = 0;

  static int32_t write(void* context, const void* source, size_t size) {
    auto* stream = static_cast<Stream*>(context);
    if (stream->bytes.size() + size > stream->limit) return 28;
    const auto* first = static_cast<const unsigned char*>(source);
    stream->bytes.insert(stream->bytes.end(), first, first + size);
    return 0;
  }
  static int32_t read(void* context, void* target, size_t size) {
    auto* stream = static_cast<Stream*>(context);
    if (stream->bytes.size() - stream->place < size) return 5;
    std::copy_n(stream->bytes.begin() + static_cast<std::ptrdiff_t>(stream->place), size,
                static_cast<unsigned char*>(target));
    stream->place += size;
    return 0;
  }
};

TEST_CASE("a sequence goes through a buffer whose size is told before") {
  SavedApi api;
  const Buffer bytes = api.saved();
  size_t size = 7;
  Buffer small(bytes.size() - 1, 0xEE);
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    return foldkv_sequence_save(api.sequence, nullptr, small.data(), small.size(), &size, error);
  });
  CHECK(size == 7);
  CHECK(std::all_of(small.begin(), small.end(), [](unsigned char byte) { return byte == 0xEE; }));
  foldkv_sequence* restored = nullptr;
  REQUIRE(api.restore(bytes, &restored) == FOLDKV_OK);
  CHECK(stats_of(restored).tokens == 120);
  CHECK(stats_of(restored).latent_tokens == stats_of(api.sequence).latent_tokens);
  CHECK(stats_of(restored).bytes == stats_of(api.sequence).bytes);
  // At any address.
  Buffer shifted(bytes.size() + 3);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 3);
  foldkv_sequence* again = nullptr;
  REQUIRE(foldkv_sequence_restore(api.runtime, api.model, api.profile, nullptr, shifted.data() + 3, bytes.size(),
                                  &again, nullptr) == FOLDKV_OK);
  foldkv_sequence_release(again);
  std::swap(restored, api.sequence);
  api.feed(5, 9);
  foldkv_sequence_release(restored);
}

TEST_CASE("several sequences go through the host's stream, with a note") {
  SavedApi api;
  foldkv_sequence* fork = nullptr;
  REQUIRE(foldkv_sequence_fork(api.sequence, &fork, nullptr) == FOLDKV_OK);
  api.feed(3, 7);
  const foldkv_sequence* both[] = {api.sequence, fork};
  const std::string note = "the words of the host";
  auto options = sized<foldkv_save_options>();
  options.note = note.data();
  options.note_size = note.size();
  options.compression = 1;
  Stream stream;
  REQUIRE(foldkv_sequences_save(both, 2, &options, Stream::write, &stream, nullptr) == FOLDKV_OK);

  auto info = sized<foldkv_snapshot_info>();
  std::string read(note.size(), ' ');
  REQUIRE(foldkv_snapshot_inspect(Stream::read, &stream, &info, read.data(), read.size(), nullptr) == FOLDKV_OK);
  CHECK(info.sequence_count == 2);
  CHECK(info.tokens == 123);
  CHECK(info.next_position == 123);
  CHECK(info.note_size == note.size());
  CHECK(read == note);
  CHECK(std::string(info.model_name) == "small");
  CHECK(std::string(info.plan) == "default");
  CHECK(info.model_fingerprint == foldkv_model_fingerprint(api.model));
  check_refused(FOLDKV_E_ARGUMENT, "note_capacity", [&](foldkv_error* error) {
    stream.place = 0;
    return foldkv_snapshot_inspect(Stream::read, &stream, &info, read.data(), 3, error);
  });

  foldkv_sequence* restored[2] = {nullptr, nullptr};
  int32_t count = 0;
  check_refused(FOLDKV_E_ARGUMENT, "capacity", [&](foldkv_error* error) {
    stream.place = 0;
    return foldkv_sequences_restore(api.runtime, api.model, api.profile, nullptr, Stream::read, &stream, restored, 1,
                                    &count, error);
  });
  CHECK(restored[0] == nullptr);
  stream.place = 0;
  REQUIRE(foldkv_sequences_restore(api.runtime, api.model, api.profile, nullptr, Stream::read, &stream, restored, 2,
                                   &count, nullptr) == FOLDKV_OK);
  REQUIRE(count == 2);
  CHECK(stats_of(restored[0]).tokens == 123);
  CHECK(stats_of(restored[1]).tokens == 120);
  CHECK(stats_of(restored[1]).shared_bytes > 0);
  for (foldkv_sequence* sequence : {restored[0], restored[1], fork}) foldkv_sequence_release(sequence);
}

TEST_CASE("a stream of the host that fails is named with its code") {
  SavedApi api;
  Stream full;
  full.limit = 1000;
  auto error = sized<foldkv_error>();
  const foldkv_sequence* one[] = {api.sequence};
  CHECK(foldkv_sequences_save(one, 1, nullptr, Stream::write, &full, &error) == FOLDKV_E_FILE);
  CHECK(error.native_code == 28);
  Stream cut{api.saved()};
  cut.bytes.resize(cut.bytes.size() / 2);
  foldkv_sequence* restored = nullptr;
  int32_t count = 0;
  CHECK(foldkv_sequences_restore(api.runtime, api.model, api.profile, nullptr, Stream::read, &cut, &restored, 1, &count,
                                 &error) == FOLDKV_E_FILE);
  CHECK(error.native_code == 5);
  CHECK(restored == nullptr);
  const int32_t flag = 1;
  auto options = sized<foldkv_save_options>();
  options.cancel = &flag;
  CHECK(foldkv_sequences_save(one, 1, &options, Stream::write, &full, &error) == FOLDKV_E_CANCELLED);
}

TEST_CASE("a file keeps its old content when a save fails, and its folder no trace") {
  const TemporaryFolder folder;
  SavedApi api;
  const auto path = folder.path() / "chat.fkvs";
  const foldkv_sequence* one[] = {api.sequence};
  REQUIRE(foldkv_sequences_save_file(one, 1, nullptr, path.c_str(), nullptr) == FOLDKV_OK);
  const auto before = read_bytes(path);
  const int32_t flag = 1;
  auto options = sized<foldkv_save_options>();
  options.cancel = &flag;
  CHECK(foldkv_sequences_save_file(one, 1, &options, path.c_str(), nullptr) == FOLDKV_E_CANCELLED);
  CHECK(read_bytes(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  foldkv_sequence* restored = nullptr;
  REQUIRE(api.restore_file(path, &restored) == FOLDKV_OK);
  CHECK(stats_of(restored).tokens == 120);
  foldkv_sequence_release(restored);

  auto error = sized<foldkv_error>();
  restored = nullptr;
  CHECK(api.restore_file(folder.path() / "nothing", &restored, &error) == FOLDKV_E_FILE);
  CHECK(error.native_code == 2);
  CHECK(std::string(error.argument) == "path");
  const auto nowhere = folder.path() / "nothing" / "chat.fkvs";
  CHECK(foldkv_sequences_save_file(one, 1, nullptr, nowhere.c_str(), &error) == FOLDKV_E_FILE);
  std::ofstream(path, std::ios::app) << "more";
  CHECK(api.restore_file(path, &restored, &error) == FOLDKV_E_CORRUPT);
  CHECK(restored == nullptr);
}

// In a process of its own: saves two sequences in turn, again and again, until it is killed.
[[noreturn]] void save_for_ever(const foldkv_sequence* first, const foldkv_sequence* second, const char* path) {
  for (int turn = 0;; ++turn) {
    const foldkv_sequence* one[] = {turn % 2 == 0 ? first : second};
    if (foldkv_sequences_save_file(one, 1, nullptr, path, nullptr) != FOLDKV_OK) _exit(1);
  }
}

TEST_CASE("killed at any point of a save, a process leaves a snapshot that can be read") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "chat.fkvs";
  SavedApi api;
  foldkv_sequence* longer = nullptr;
  REQUIRE(foldkv_sequence_fork(api.sequence, &longer, nullptr) == FOLDKV_OK);
  std::swap(longer, api.sequence);
  api.feed(30, 3);
  const foldkv_sequence* one[] = {longer};
  REQUIRE(foldkv_sequences_save_file(one, 1, nullptr, path.c_str(), nullptr) == FOLDKV_OK);
  for (useconds_t pause = 500; pause < 30'000; pause += 731) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) save_for_ever(longer, api.sequence, path.c_str());
    usleep(pause);
    REQUIRE(kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    foldkv_sequence* restored = nullptr;
    REQUIRE(api.restore_file(path, &restored) == FOLDKV_OK);
    const int64_t tokens = stats_of(restored).tokens;
    CHECK((tokens == 120 || tokens == 150));
    foldkv_sequence_release(restored);
  }
  foldkv_sequence_release(longer);
}

TEST_CASE("weights of another name are refused, and so are other plans") {
  SavedApi api;
  const Buffer bytes = api.saved();
  foldkv_model_options options = api.model_options();
  options.name = "other";
  foldkv_model* other = nullptr;
  REQUIRE(foldkv_model_create(&options, &other, nullptr) == FOLDKV_OK);
  foldkv_sequence* restored = nullptr;
  check_refused(FOLDKV_E_MISMATCH, "model", [&](foldkv_error* error) {
    return foldkv_sequence_restore(api.runtime, other, nullptr, nullptr, bytes.data(), bytes.size(), &restored, error);
  });
  check_refused(FOLDKV_E_MISMATCH, "profile", [&](foldkv_error* error) {
    return foldkv_sequence_restore(api.runtime, api.model, nullptr, nullptr, bytes.data(), bytes.size(), &restored,
                                   error);
  });
  auto wants = sized<foldkv_restore_options>();
  wants.plan = "31x";
  check_refused(FOLDKV_E_MISMATCH, "options.plan", [&](foldkv_error* error) {
    return foldkv_sequence_restore(api.runtime, api.model, api.profile, &wants, bytes.data(), bytes.size(), &restored,
                                   error);
  });
  CHECK(restored == nullptr);
  foldkv_model_release(other);
}

TEST_CASE("saving and restoring check their arguments") {
  SavedApi api;
  const foldkv_sequence* one[] = {api.sequence};
  const foldkv_sequence* none[] = {nullptr};
  Stream stream;
  const auto save = [&](const foldkv_sequence* const* list, int32_t count, const foldkv_save_options* options,
                        foldkv_write write) {
    return [&stream, list, count, options, write](foldkv_error* error) {
      return foldkv_sequences_save(list, count, options, write, &stream, error);
    };
  };
  check_refused(FOLDKV_E_ARGUMENT, "sequences", save(nullptr, 1, nullptr, Stream::write));
  check_refused(FOLDKV_E_ARGUMENT, "sequences[0]", save(none, 1, nullptr, Stream::write));
  check_refused(FOLDKV_E_ARGUMENT, "sequence_count", save(one, 0, nullptr, Stream::write));
  check_refused(FOLDKV_E_ARGUMENT, "write", save(one, 1, nullptr, nullptr));
  auto options = sized<foldkv_save_options>();
  options.compression = 20;
  check_refused(FOLDKV_E_ARGUMENT, "options.compression", save(one, 1, &options, Stream::write));
  options.compression = 0;
  options.note_size = 3;
  check_refused(FOLDKV_E_ARGUMENT, "options.note_size", save(one, 1, &options, Stream::write));
  CHECK(stream.bytes.empty());
  size_t size = 0;
  check_refused(FOLDKV_E_ARGUMENT, "sequence",
                [&](foldkv_error* error) { return foldkv_sequence_save(nullptr, nullptr, nullptr, 0, &size, error); });
  check_refused(FOLDKV_E_ARGUMENT, "size", [&](foldkv_error* error) {
    return foldkv_sequence_save(api.sequence, nullptr, nullptr, 0, nullptr, error);
  });
  foldkv_sequence* restored = nullptr;
  int32_t count = 0;
  check_refused(FOLDKV_E_ARGUMENT, "bytes", [&](foldkv_error* error) {
    return foldkv_sequence_restore(api.runtime, api.model, api.profile, nullptr, nullptr, 0, &restored, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "read", [&](foldkv_error* error) {
    return foldkv_sequences_restore(api.runtime, api.model, api.profile, nullptr, nullptr, nullptr, &restored, 1,
                                    &count, error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "path", [&](foldkv_error* error) {
    return foldkv_sequences_restore_file(api.runtime, api.model, api.profile, nullptr, nullptr, &restored, 1, &count,
                                         error);
  });
  check_refused(FOLDKV_E_ARGUMENT, "read", [&](foldkv_error* error) {
    auto info = sized<foldkv_snapshot_info>();
    return foldkv_snapshot_inspect(nullptr, nullptr, &info, nullptr, 0, error);
  });
}

}  // namespace
}  // namespace foldkv::test
