#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "doctest/doctest.h"
#include "tests/golden/snapshots/saved_world.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"

// Snapshots of released versions must be readable for good, on every backend, and give the values that they gave then.
namespace foldkv::test {
namespace {

struct MemoryStream {
  std::vector<std::byte> bytes;
  size_t place = 0;

  static int32_t read(void* context, void* target, size_t size) {
    auto* stream = static_cast<MemoryStream*>(context);
    if (stream->bytes.size() - stream->place < size) return 1;
    std::memcpy(target, stream->bytes.data() + stream->place, size);
    stream->place += size;
    return 0;
  }
};

std::vector<Sequence> restored(Runtime& runtime, const Model& model, const Profile* profile, MemoryStream stream) {
  foldkv_sequence* handles[2] = {nullptr, nullptr};
  int32_t count = 0;
  foldkv_error error = init<foldkv_error>();
  REQUIRE_MESSAGE(foldkv_sequences_restore(runtime.get(), model.get(), profile == nullptr ? nullptr : profile->get(),
                                           nullptr, MemoryStream::read, &stream, handles, 2, &count,
                                           &error) == FOLDKV_OK,
                  error.message);
  std::vector<Sequence> sequences;
  for (int32_t index = 0; index < count; ++index) sequences.emplace_back(handles[index]);
  return sequences;
}

void check_rows(const nlohmann::json& got, const nlohmann::json& expected) {
  const std::vector<float> a = numbers_f32(got);
  const std::vector<float> b = numbers_f32(expected);
  REQUIRE(a.size() == b.size());
  // Decoding is exact; what is rebuilt by a product may differ in its last bits.
  for (size_t index = 0; index < a.size(); ++index) REQUIRE(std::abs(a[index] - b[index]) <= 2e-6F);
}

void check_told(const nlohmann::json& got, const nlohmann::json& expected) {
  CHECK(got["next_position"] == expected["next_position"]);
  CHECK(got["tokens"] == expected["tokens"]);
  for (size_t layer = 0; layer < kSavedLayers; ++layer) {
    CHECK(got["layers"][layer]["positions"] == expected["layers"][layer]["positions"]);
    for (const char* side : {"keys", "values"}) check_rows(got["layers"][layer][side], expected["layers"][layer][side]);
  }
}

TEST_CASE("snapshots of version 0.1 hold what they held") {
  const Model model = saved_model();
  for (const std::string name : {"exact", "learned", "int8", "kivi", "snapkv", "h2o"}) {
    CAPTURE(name);
    const MemoryStream stream{read_bytes(data_path("snapshots_0_1/" + name + ".fkvs"))};
    const nlohmann::json expected = nlohmann::json::parse(read_text(data_path("snapshots_0_1/" + name + ".json")));
    std::optional<Profile> profile;
    if (name == "learned" || name == "int8" || name == "kivi") {
      const auto bytes = read_bytes(data_path("snapshots_0_1/" + name + ".fkvp"));
      profile = value_or_stop(Profile::load(bytes));
    }
    for (int32_t index = 0; index < foldkv_backend_count(); ++index) {
      const auto backend = value_or_stop(foldkv::backend(index));
      CAPTURE(backend.name);
      Runtime runtime = saved_runtime(backend.name);
      const std::vector<Sequence> sequences =
          restored(runtime, model, profile.has_value() ? &*profile : nullptr, stream);
      REQUIRE(sequences.size() == expected.size());
      for (size_t sequence = 0; sequence < sequences.size(); ++sequence) {
        check_told(told_by(sequences[sequence]), expected[sequence]);
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
