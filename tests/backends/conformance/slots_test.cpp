#include <vector>

#include "doctest/doctest.h"
#include "tests/backends/conformance/group_data.h"
#include "tests/backends/conformance/subjects.h"
#include "tests/support/slots.h"

// Chosen tokens give what the same tokens give when they lie side by side.
namespace foldkv::test {
namespace {

using backend::Side;

// The tokens of a group's run again, in slots with others between them.
struct Spread {
  explicit Spread(const GroupData& data)
      : exact({data.shape.exact_page_tokens, data.shape.layer_width, data.shape.format}, data.shape.layers,
              4 * data.shape.count + 9, kPoison) {
    Random random(77);
    while (std::ssize(slots) < data.shape.count) {
      slots.push_back((slots.empty() ? 3 : slots.back() + 1) + static_cast<int32_t>(random.between(0, 3)));
    }
    for (const Side side : {Side::kKeys, Side::kValues}) {
      for (int64_t t = 0; t < data.shape.count; ++t) {
        const std::vector<double> row = data.exact.numbers(side, data.shape.first_slot + t, 1);
        const std::vector<float> numbers(row.begin(), row.end());
        exact.put(side, slots[static_cast<size_t>(t)], numbers.data());
      }
    }
  }

  [[nodiscard]] backend::StackedRows rows(Side side) const {
    backend::StackedRows rows = exact.rows(side, 0, std::ssize(slots));
    rows.slots = slots.data();
    return rows;
  }

  StackedPages exact;
  std::vector<int32_t> slots;
};

struct Written {
  std::vector<uint16_t> means[2];
  std::vector<std::byte> pages;
  std::vector<double> sketch;

  bool operator==(const Written& other) const {
    return means[0] == other.means[0] && means[1] == other.means[1] && pages == other.pages && sketch == other.sketch;
  }
};

template <typename Rows>
Written write(backend::Backend& backend, const GroupShape& shape, const Rows& rows_of) {
  GroupData data(shape, 78, kZero);
  const int64_t columns = std::max<int64_t>(1, shape.correction_rank);
  const MemoryBlock workspace(backend.latent_workspace(data.latent_shape(columns)), kPoison);
  const std::vector<double> test = data.random.normals<double>(shape.width() * columns);
  const int64_t slot = shape.first_latent_slot;
  Written written;
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const backend::StackedRows rows = rows_of(data, side);
    std::vector<uint16_t>& mean = written.means[static_cast<size_t>(side)];
    mean.resize(static_cast<size_t>(shape.width()));
    REQUIRE(backend.mean({rows, mean.data(), workspace.data()}).ok());
    REQUIRE(backend
                .encode({rows, mean.data(), data.basis(side).data(), &data.layout, data.latents.pool().pages(), slot,
                         workspace.data()})
                .ok());
  }
  written.sketch.resize(test.size());
  REQUIRE(backend
              .sketch({rows_of(data, Side::kKeys), &data.layout, data.region(true), slot, data.key_basis.data(),
                       test.data(), columns, written.sketch.data(), workspace.data()})
              .ok());
  if (shape.correction_rank > 0) {
    REQUIRE(backend
                .coefficients({rows_of(data, Side::kKeys), &data.layout, data.region(true), slot,
                               data.key_basis.data(), workspace.data()})
                .ok());
  }
  CHECK(workspace.canary_alive());
  written.pages = data.latents.pool().bytes();
  return written;
}

TEST_CASE("mean, encode, sketch and coefficients of chosen tokens") {
  Random random(79);
  for (int i = 0; i < 40; ++i) {
    const GroupShape shape = random_group(random);
    CAPTURE(describe(shape));
    const Spread spread(GroupData(shape, 78, kZero));
    for (const Subject& subject : subjects()) {
      CAPTURE(subject.name);
      const Written expected = write(*subject.one_thread, shape, [](const GroupData& data, Side side) {
        return data.rows(side);
      });
      for (RecordingBackend* backend : {subject.one_thread.get(), subject.three_threads.get()}) {
        CHECK(write(*backend, shape, [&](const GroupData&, Side side) { return spread.rows(side); }) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
