#include <algorithm>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/codec/latent_layout.h"
#include "tests/backends/conformance/subjects.h"
#include "tests/support/layer_group.h"

// Latents that are rows themselves, in every code: all backends write the reference's bytes, from random rows and into
// dirty pages, and read them back alike.
namespace foldkv::test {
namespace {

using backend::Code;
using backend::Side;

struct CodecCase {
  int64_t layers = 1;
  int64_t heads = 1;
  int64_t head_size = 8;
  Band keys, values;
  int64_t scale_group = 32;
  int32_t retained = -1;  // 0 or more: merged
  int64_t runs = 1;
  int64_t first_run = 0;
  NumberFormat format = NumberFormat::kF16;

  [[nodiscard]] int64_t layer_width() const { return heads * head_size; }
};

std::string describe(const CodecCase& c) {
  return absl::StrCat(c.layers, " layers of ", c.heads, " x ", c.head_size, ", codes ", static_cast<int>(c.keys.code),
                      " and ", static_cast<int>(c.values.code), ", bits ", c.keys.bits, " by ", c.scale_group,
                      ", retained ", c.retained, ", runs ", c.first_run, " + ", c.runs, ", ",
                      std::string(name_of(c.format)));
}

Band random_band(Random& random, int64_t width) {
  Band band{static_cast<int32_t>(width), static_cast<int32_t>(random.between(2, 8))};
  band.code = random.pick(std::vector<Code>{Code::kUniform, Code::kHalf, Code::kAsymmetric, Code::kChannel});
  if (band.code == Code::kHalf) band.bits = 16;
  return band;
}

CodecCase random_case(Random& random) {
  CodecCase c;
  c.heads = random.between(1, 4);
  c.head_size = random.pick(std::vector<int64_t>{1, 3, 8, 20, 64, 80, 256});
  c.format = random.pick(std::vector<NumberFormat>{NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16});
  c.scale_group = random.pick(std::vector<int64_t>{5, 32, 64, 128});
  if (random.chance(0.3)) {
    c.layers = 2;
    c.keys = c.values = {static_cast<int32_t>(c.layer_width()), 16, Code::kHalf};
    c.retained = static_cast<int32_t>(random.between(0, 64));
  } else {
    c.layers = random.between(1, 3);
    c.keys = random_band(random, c.layers * c.layer_width());
    c.values = random_band(random, c.layers * c.layer_width());
  }
  c.runs = random.between(1, 3);
  c.first_run = random.between(0, 3);
  return c;
}

backend::LatentLayout layout_of(const CodecCase& c) {
  LatentFormat format;
  format.keys = {{c.keys}, c.keys.width, {}};
  format.values = {{c.values}, c.values.width, {}};
  format.scale_group = c.scale_group;
  if (c.retained >= 0) {
    format.merge = {static_cast<int32_t>(c.heads), static_cast<int32_t>(c.head_size), c.retained, 0.6f};
  }
  return latent_layout(format);
}

// Random rows, of which some tokens are zero and some constant.
void fill_rows(const CodecCase& c, int64_t tokens, const StackedPages& exact) {
  Random random(31);
  for (int64_t token = 0; token < tokens; ++token) {
    for (const Side side : {Side::kKeys, Side::kValues}) {
      std::vector<float> row = random.normals<float>(c.layers * c.layer_width(), 3.0);
      if (token % 7 == 3) std::fill(row.begin(), row.end(), token % 2 == 0 ? 0.0f : 2.5f);
      exact.put(side, token, row.data());
    }
  }
}

struct Written {
  std::vector<std::byte> bytes;
  std::vector<float> rows[2];  // of keys and values, all layers
  std::vector<float> middle;   // keys of the last layer, from the second token on
};

std::vector<float> rebuild(backend::Backend& backend, const backend::LatentLayout& layout, const LatentPages& pages,
                           Side side, int64_t first, int64_t count, int64_t first_row, int64_t row_count,
                           const backend::LatentShape& shape) {
  std::vector<float> output(static_cast<size_t>(count * row_count));
  const MemoryBlock workspace(backend.latent_workspace(shape), kPoison);
  const backend::LatentRegion region = {pages.pool().pages(), first + count, nullptr, nullptr, nullptr};
  REQUIRE(backend.rebuild({&layout, region, side, first, count, nullptr, first_row, row_count, output.data(),
                           workspace.data()})
              .ok());
  CHECK(workspace.canary_alive());
  return output;
}

Written write(const CodecCase& c, backend::Backend& backend, std::byte fill) {
  const backend::LatentLayout layout = layout_of(c);
  const int64_t first = c.first_run * layout.run_tokens();
  const int64_t tokens = c.runs * layout.run_tokens();
  const int64_t width = c.layers * c.layer_width();
  const StackedPages exact({32, c.layer_width(), c.format}, c.layers, tokens, fill);
  fill_rows(c, tokens, exact);
  const LatentPages pages(layout, first + tokens, kZero);
  const backend::LatentShape shape = {width, layout.keys.width, layout.values.width, 0, tokens, 0, layout.run_tokens()};
  const MemoryBlock workspace(backend.latent_workspace(shape), fill);
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const Status status = backend.encode(
        {exact.rows(side, 0, tokens), nullptr, nullptr, &layout, pages.pool().pages(), first, workspace.data()});
    REQUIRE_MESSAGE(status.ok(), std::string(status.message()));
  }
  CHECK(workspace.canary_alive());
  CHECK(pages.pool().canaries_alive());
  Written written;
  written.bytes = pages.pool().bytes();
  for (const Side side : {Side::kKeys, Side::kValues}) {
    written.rows[static_cast<size_t>(side)] = rebuild(backend, layout, pages, side, first, tokens, 0, width, shape);
  }
  if (tokens > 1) {
    written.middle = rebuild(backend, layout, pages, Side::kKeys, first + 1, tokens - 1,
                             (c.layers - 1) * c.layer_width(), c.layer_width(), shape);
  }
  return written;
}

TEST_CASE("rows in every code: the reference's bytes and numbers on every backend") {
  Random random(17);
  for (int i = 0; i < 60; ++i) {
    const CodecCase c = random_case(random);
    CAPTURE(describe(c));
    const Written expected = write(c, *subjects().front().one_thread, kZero);
    for (const Subject& subject : subjects()) {
      CAPTURE(subject.name);
      for (RecordingBackend* backend : {subject.one_thread.get(), subject.three_threads.get()}) {
        const Written actual = write(c, *backend, kPoison);
        CHECK(actual.bytes == expected.bytes);
        CHECK(actual.rows[0] == expected.rows[0]);
        CHECK(actual.rows[1] == expected.rows[1]);
        CHECK(actual.middle == expected.middle);
      }
    }
  }
}

TEST_CASE("rows that do not fit a code are a numeric error on every backend") {
  for (const Code code : {Code::kUniform, Code::kHalf, Code::kAsymmetric, Code::kChannel}) {
    for (const bool merged : {false, true}) {
      if (merged && code != Code::kHalf) continue;
      for (const float bad : {1e9f, std::numeric_limits<float>::quiet_NaN()}) {
        CodecCase c;
        c.format = NumberFormat::kF32;
        c.layers = 2;
        c.keys = c.values = {merged ? 8 : 16, code == Code::kHalf ? 16 : 4, code};
        c.retained = merged ? 1 : -1;
        const backend::LatentLayout layout = layout_of(c);
        const int64_t tokens = layout.run_tokens();
        const StackedPages exact({32, 8, c.format}, 2, tokens, kZero);
        fill_rows(c, tokens, exact);
        std::vector<float> row(16, 1.0f);
        row[13] = bad;
        exact.put(Side::kKeys, tokens - 1, row.data());
        for (const Subject& subject : subjects()) {
          CAPTURE(subject.name);
          CAPTURE(static_cast<int>(code));
          const LatentPages pages(layout, tokens, kZero);
          const MemoryBlock workspace(
              subject.one_thread->latent_workspace({16, 16, 16, 0, tokens, 0, tokens}), kPoison);
          const Status status = subject.one_thread->encode({exact.rows(Side::kKeys, 0, tokens), nullptr, nullptr,
                                                            &layout, pages.pool().pages(), 0, workspace.data()});
          CHECK(status.code() == absl::StatusCode::kUnknown);
        }
      }
    }
  }
}

}  // namespace
}  // namespace foldkv::test
