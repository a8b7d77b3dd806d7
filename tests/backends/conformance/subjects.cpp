#include "tests/backends/conformance/subjects.h"

#include "doctest/doctest.h"
#include "tests/support/backends.h"

namespace foldkv::test {
namespace {

std::unique_ptr<RecordingBackend> open_recording(const BackendChoice& choice, int32_t threads) {
  return std::make_unique<RecordingBackend>(open_backend(choice, threads));
}

void run_backwards(void* /*context*/, int32_t count, void (*task)(void*, int32_t), void* task_context) {
  for (int32_t i = count - 1; i >= 0; --i) task(task_context, i);
}

std::unique_ptr<RecordingBackend> open_on_host_threads(const BackendChoice& choice) {
  backend::DeviceOptions options;
  options.threads = 5;
  options.instruction_set = choice.instruction_set;
  options.parallel_for = run_backwards;
  return std::make_unique<RecordingBackend>(choice.plugin->open(options).value());
}

void expect_nothing_wrong(const std::string& wrong, const char* comparison, const Subject& subject, Operation operation,
                          const Row& row) {
  CHECK_MESSAGE(wrong.empty(),
                absl::StrCat(subject.name, ", ", name_of(operation), " [", row.name, "], ", comparison, ": ", wrong));
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> subjects = [] {
    std::vector<Subject> opened;
    for (const BackendChoice& choice : all_choices()) {
      opened.push_back(
          {choice.name, open_recording(choice, 1), open_recording(choice, 3), open_on_host_threads(choice)});
    }
    return opened;
  }();
  return subjects;
}

void check_row(Operation operation, const Row& row) {
  const Outcome expected = row.run(*subjects().front().one_thread, kZero);
  for (const Subject& subject : subjects()) {
    const int64_t calls = subject.one_thread->calls(operation);
    const Outcome actual = row.run(*subject.one_thread, kPoison);
    const auto expect = [&](const std::string& wrong, const char* comparison) {
      expect_nothing_wrong(wrong, comparison, subject, operation, row);
    };
    CHECK_MESSAGE(subject.one_thread->calls(operation) > calls, row.name, " does not run its operation");
    expect(difference(expected, actual), "against the reference");
    expect(not_finite(actual), "with poison in unused memory");
    const bool is_reference = &subject == &subjects().front();
    const Outcome with_zeros = is_reference ? expected : row.run(*subject.one_thread, kZero);
    expect(bit_difference(actual, with_zeros), "with zeros for poison");
    expect(bit_difference(actual, row.run(*subject.three_threads, kPoison)), "on three threads");
    expect(bit_difference(actual, row.run(*subject.host_threads, kPoison)), "on the host's threads");
  }
}

}  // namespace foldkv::test
