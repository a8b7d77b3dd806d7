#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/group_data.h"

namespace foldkv::test {
namespace {

using backend::ScaleGroup;
using backend::Side;

enum class Content { kNormal, kOffset, kZero, kConstant, kDenormal, kOnePeak, kEdges, kHuge, kNotFinite };
constexpr const char* kContentNames[] = {"normal",   "about 900", "zero", "constant",  "denormal",
                                         "one peak", "on edges",  "huge", "not finite"};

struct EncodeCase {
  GroupShape shape;
  Side side = Side::kKeys;
  Content content = Content::kNormal;
  bool identity = false;  // the row is its own latent, so that codes and scales must be the same to the bit
};

// Row t of the tokens, [width].
std::vector<float> row_of_content(Random& random, Content content, int64_t t, int64_t width) {
  auto row = random.normals<float>(width);
  const auto fill = [&](float number) { std::fill(row.begin(), row.end(), number); };
  switch (content) {
    case Content::kNormal: break;
    case Content::kOffset:
      for (float& number : row) number += 900.0f;
      break;
    case Content::kZero:
      if (t % 2 == 0) fill(t % 4 == 0 ? 0.0f : -0.0f);
      break;
    case Content::kConstant: fill(5.0f); break;
    case Content::kDenormal: fill(t % 2 == 0 ? 1e-42f : -6e-8f); break;
    case Content::kOnePeak:
      fill(1e-7f);
      row[static_cast<size_t>(t % width)] = 65504.0f;
      break;
    case Content::kEdges:  // at 4 bits and 32 to a scale group: a step of 1, and all others half way between two codes
      for (int64_t i = 0; i < width; ++i) {
        row[static_cast<size_t>(i)] = i % 32 == 0 ? 7.0f : static_cast<float>((t + i) % 13) - 6.5f;
      }
      break;
    case Content::kHuge:
      if (t == 1) row[0] = 1e9f;
      break;
    case Content::kNotFinite:
      if (t == 1) row[0] = std::numeric_limits<float>::quiet_NaN();
      break;
  }
  return row;
}

std::vector<float> identity_basis(int64_t width, int64_t latent_width) {
  std::vector<float> basis(static_cast<size_t>(width * latent_width), 0.0f);
  for (int64_t i = 0; i < std::min(width, latent_width); ++i) basis[static_cast<size_t>(i * latent_width + i)] = 1.0f;
  return basis;
}

struct Encoded {
  std::vector<double> codes;   // of trellis groups the bytes
  std::vector<double> scales;  // f16 patterns or bytes: neighbours are one apart
};

// One token's codes and scale of a group.
void take_group(const GroupData& data, Side side, int64_t slot, const ScaleGroup& group, Encoded& encoded,
                Outcome& outcome) {
  const bool trellis = group.code == backend::Code::kTrellis;
  const int64_t used = trellis ? divide_up(group.count, group.step) * group.bits : int64_t{group.count} * group.bits;
  const std::byte* const bytes = data.latents.codes(side, slot) + group.byte_offset;
  const std::byte* const scale = data.latents.scale_bytes(side, slot) + group.scale_offset;
  if (trellis) {
    encoded.scales.push_back(std::to_integer<int>(*scale));
    for (int64_t i = 0; i < divide_up(used, 8); ++i) encoded.codes.push_back(std::to_integer<int>(bytes[i]));
  } else {
    uint16_t half = 0;
    std::memcpy(&half, scale, sizeof half);
    encoded.scales.push_back(half);
    for (int32_t i = 0; i < group.count; ++i) {
      encoded.codes.push_back(static_cast<double>(data.latents.code(side, slot, group, i)));
    }
  }
  if (used % 8 == 0) return;
  outcome.expect(std::to_integer<int>(bytes[used / 8]) >> (used % 8) == 0, "spare bits of a scale group are not zero");
}

// Reads what was written, then puts `fill` back: what is left of the pages must be as it was.
Encoded take_encoded(const GroupData& data, Side side, std::byte fill, Outcome& outcome) {
  const backend::LatentPlane& plane = data.layout.plane(side);
  Encoded encoded;
  for (int64_t slot = data.shape.first_latent_slot; slot < data.shape.first_latent_slot + data.shape.count; ++slot) {
    for (const ScaleGroup& group : plane.scale_groups) take_group(data, side, slot, group, encoded, outcome);
    std::memset(data.latents.codes(side, slot), std::to_integer<int>(fill), static_cast<size_t>(plane.code_bytes));
    std::memset(data.latents.scale_bytes(side, slot), std::to_integer<int>(fill),
                static_cast<size_t>(plane.scale_bytes));
  }
  const std::vector<std::byte> rest = data.latents.pool().bytes();
  outcome.expect(std::all_of(rest.begin(), rest.end(), [=](std::byte b) { return b == fill; }),
                 "written beside the codes and scales of the tokens");
  return encoded;
}

Outcome run(const EncodeCase& encode_case, backend::Backend& backend, std::byte fill) {
  GroupData data(encode_case.shape, 20, fill);
  const GroupShape& shape = data.shape;
  for (int64_t t = 0; t < shape.count; ++t) {
    const auto row = row_of_content(data.random, encode_case.content, t, shape.width());
    data.exact.put(encode_case.side, shape.first_slot + t, row.data());
  }
  data.latents.pool().fill(fill);
  const int64_t latent_width = data.layout.plane(encode_case.side).width;
  const auto basis = encode_case.identity ? identity_basis(shape.width(), latent_width) : data.basis(encode_case.side);
  const MemoryBlock workspace(backend.latent_workspace(data.latent_shape(0)), fill);
  Outcome outcome;
  outcome.set_status(
      backend.encode({data.rows(encode_case.side), data.mean(encode_case.side), basis.data(), &data.layout,
                      data.latents.pool().pages(), shape.first_latent_slot, workspace.data()}));
  outcome.expect(data.canaries_alive() && workspace.canary_alive(), "written beyond the pages or the workspace");
  if (outcome.code != absl::StatusCode::kOk) return outcome;
  const Encoded encoded = take_encoded(data, encode_case.side, fill, outcome);
  const FieldKind kind = encode_case.identity ? FieldKind::kEqual : FieldKind::kSteps;
  const int64_t codes = std::ssize(encoded.codes) / shape.count;
  outcome.fields.push_back({"codes", kind, encoded.codes, std::max<int64_t>(codes, 1), {}, 0.005});
  // There are so few scales in a row that one on a rounding edge is already many.
  outcome.fields.push_back({"scales", kind, encoded.scales, 1, {}, 0.02});
  return outcome;
}

Row row_of(const EncodeCase& encode_case) {
  return {
      absl::StrCat(encode_case.side == Side::kKeys ? "keys, " : "values, ", describe(encode_case.shape), ", ",
                   kContentNames[static_cast<size_t>(encode_case.content)], encode_case.identity ? ", identity" : ""),
      [encode_case](backend::Backend& backend, std::byte fill) { return run(encode_case, backend, fill); }};
}

Row random_row(Random& random) {
  EncodeCase encode_case;
  encode_case.shape = random_group(random);
  encode_case.side = random.chance(0.5) ? Side::kKeys : Side::kValues;
  // Codes of random latents lie on an edge now and then; with the identity there are none between backends.
  encode_case.identity = true;
  encode_case.shape.means = false;
  return row_of(encode_case);
}

GroupShape shape_of(const std::vector<LatentBand>& bands, int64_t scale_group, int64_t count) {
  GroupShape shape;
  shape.layers = 3;
  shape.layer_width = 24;
  shape.key_bands = bands;
  shape.value_bands = bands;
  shape.scale_group = scale_group;
  shape.count = count;
  shape.first_slot = 4;
  shape.first_latent_slot = 61;
  shape.exact_page_tokens = 32;
  return shape;
}

// From equal latents: a string found for others is another one altogether.
template <typename Add>
void add_trellis_shapes(Add add) {
  for (const LatentBand& band : trellis_bands(70)) {
    for (const int64_t scale_group : {5, 16, 64}) add(shape_of({band}, scale_group, 65), Content::kNormal);
    for (const Content content : {Content::kZero, Content::kConstant, Content::kOnePeak, Content::kEdges}) {
      add(shape_of({band}, 32, 17), content);
    }
  }
  const std::vector<LatentBand> mixed = {{16, 6}, {16, 4, 1}, {8, 3, 1}, {8, 3, 2}, {5, 1, 1}, {16, 1, 2}, {3, 0}};
  for (const int64_t count : {1, 15, 16, 33}) add(shape_of(mixed, 8, count), Content::kNormal);
  add(shape_of({{16, 1, 1}, {16, 4}, {16, 1, 1}}, 16, 20), Content::kNormal);  // two strings
  add(shape_of({{64, 2, 1}}, 64, 5), Content::kHuge);
  add(shape_of({{64, 2, 1}}, 64, 5), Content::kNotFinite);
}

}  // namespace

OperationRows encode_rows() {
  OperationRows table{Operation::kEncode, {}, random_row};
  for (const Side side : {Side::kKeys, Side::kValues}) {
    for (const bool identity : {false, true}) {
      const auto add = [&](GroupShape shape, Content content) {
        shape.means = !identity && content != Content::kZero;
        if (identity) shape.format = NumberFormat::kF32;
        table.rows.push_back(row_of({shape, side, content, identity}));
      };
      for (int32_t bits = 2; bits <= 8; ++bits) {
        for (const int64_t scale_group : {5, 16, 64, 128})
          add(shape_of({{70, bits}}, scale_group, 65), Content::kNormal);
      }
      add(shape_of({{16, 8}, {24, 4}, {11, 3}, {10, 2}, {11, 0}}, 16, 65), Content::kNormal);
      add(shape_of({{1, 7}, {1, 5}, {1, 2}}, 128, 7), Content::kNormal);
      add(shape_of({{3, 0}}, 128, 7), Content::kNormal);  // nothing is stored
      for (const Content content :
           {Content::kOffset, Content::kZero, Content::kConstant, Content::kDenormal, Content::kOnePeak}) {
        add(shape_of({{40, 8}, {30, 4}}, 32, 20), content);
      }
      if (identity) {
        add(shape_of({{72, 4}}, 32, 20), Content::kEdges);
        add_trellis_shapes(add);
      }
      GroupShape wide = shape_of({{72, 4}}, 128, 5);
      wide.format = NumberFormat::kF32;
      add(wide, Content::kHuge);
      add(wide, Content::kNotFinite);
    }
  }
  for (const NumberFormat format : all_formats()) {
    GroupShape shape = shape_of({{128, 4}, {72, 2}}, 128, 130);
    shape.layers = 4;
    shape.layer_width = 64;
    shape.format = format;
    table.rows.push_back(row_of({shape, Side::kKeys, Content::kNormal, false}));
  }
  return table;
}

}  // namespace foldkv::test
