#include "runtime/codec/latent_layout.h"
#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/slots.h"

namespace foldkv::test {
namespace {

using backend::Code;
using backend::Side;

struct MoveLatentsCase {
  std::string name;
  backend::LatentLayout layout;
  int64_t tokens = 0;
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
  std::vector<int32_t> slots;  // empty: from, from + 1 ...
};

// All bytes of a token: moving is blind to what they mean.
void for_each_byte(const LatentPages& pages, int64_t slot, const std::function<void(std::byte&)>& visit) {
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const backend::LatentPlane& plane = pages.layout().plane(side);
    std::for_each_n(pages.codes(side, slot), plane.code_bytes, visit);
    std::for_each_n(pages.scale_bytes(side, slot), plane.scale_bytes, visit);
  }
  std::for_each_n(reinterpret_cast<std::byte*>(pages.coefficients(slot)), 2 * pages.layout().correction_rank, visit);
}

Outcome run(const MoveLatentsCase& move, backend::Backend& backend, std::byte fill) {
  const LatentPages pages(move.layout, move.tokens, fill);
  Random random(41);
  for (int64_t slot = 0; slot < move.tokens; ++slot) {
    for_each_byte(pages, slot, [&](std::byte& byte) { byte = static_cast<std::byte>(random.between(0, 255)); });
  }
  Outcome outcome;
  outcome.set_status(backend.move_latents({&pages.layout(), pages.pool().pages(),
                                           move.slots.empty() ? nullptr : move.slots.data(), move.from, move.to,
                                           move.count}));
  outcome.expect(pages.pool().canaries_alive(), "written beyond the pages");
  std::vector<double> bytes;
  for (int64_t slot = 0; slot < move.tokens; ++slot) {
    for_each_byte(pages, slot, [&](std::byte& byte) { bytes.push_back(std::to_integer<int>(byte)); });
  }
  outcome.fields.push_back(equal_field("bytes", bytes, std::max<int64_t>(1, std::ssize(bytes) / move.tokens)));
  return outcome;
}

Row row_of(const MoveLatentsCase& move) {
  return {absl::StrCat(move.name, ": ", move.count, " of ", move.tokens, " tokens from ", move.from,
                       move.slots.empty() ? "" : " and beyond", " to ", move.to, " in pages of ",
                       move.layout.page_tokens, ", rank ", move.layout.correction_rank),
          [move](backend::Backend& backend, std::byte fill) { return run(move, backend, fill); }};
}

backend::LatentLayout coded_layout(Code code, int32_t bits, int64_t page_tokens) {
  Band band{48, bits};
  band.code = code;
  const backend::LatentPlane plane = latent_plane({{band}, 48, {}}, 20);
  return make_layout(plane, plane, 0, page_tokens);
}

backend::LatentLayout merged_layout() {
  LatentFormat format;
  format.keys = {{{16, 16, Code::kHalf}}, 16, {}};
  format.values = format.keys;
  format.scale_group = 16;
  format.merge = {2, 8, 3, 0.6f};
  return latent_layout(format);
}

MoveLatentsCase random_case(Random& random) {
  const std::vector<LatentBand> keys = {{random.between(1, 40), static_cast<int32_t>(random.between(2, 8))},
                                        random.pick(trellis_bands(random.between(1, 40)))};
  const std::vector<LatentBand> values = {random.pick(trellis_bands(random.between(1, 40)))};
  MoveLatentsCase move{"random"};
  move.layout = make_layout(make_plane(keys, random.between(3, 64)), make_plane(values, 16), random.between(0, 9),
                            random.between(1, 20));
  move.tokens = random.between(1, 80);
  move.to = random.between(0, move.tokens);
  move.from = random.between(move.to, move.tokens);
  move.count = random.between(0, move.tokens - move.from);
  if (random.chance(0.7)) {
    move.slots = random_slots(random, move.to, move.tokens, random.uniform());
    move.count = std::ssize(move.slots);
  }
  return move;
}

}  // namespace

OperationRows move_latents_rows() {
  OperationRows table{Operation::kMoveLatents, {}, [](Random& random) { return row_of(random_case(random)); }};
  const auto add = [&](const std::string& name, const backend::LatentLayout& layout) {
    table.rows.push_back(row_of({name, layout, 40, 0, 0, 40, {}}));   // onto itself
    table.rows.push_back(row_of({name, layout, 40, 1, 0, 39, {}}));   // overlapping
    table.rows.push_back(row_of({name, layout, 40, 40, 4, 0, {}}));   // nothing
    table.rows.push_back(row_of({name, layout, 40, 0, 2, 6, {2, 3, 9, 10, 11, 39}}));
  };
  for (const int64_t page_tokens : {1, 7, 64}) {
    add("uniform", coded_layout(Code::kUniform, 4, page_tokens));
    add("asymmetric", coded_layout(Code::kAsymmetric, 3, page_tokens));
    add("halves", coded_layout(Code::kHalf, 16, page_tokens));
    for (const LatentBand& band : trellis_bands(37)) {
      const backend::LatentPlane plane = make_plane({band, {9, 8}, {5, 0}}, 16);
      add("trellis", make_layout(plane, plane, 5, page_tokens));
    }
  }
  // Several tokens share what would have to move.
  add("channels", coded_layout(Code::kChannel, 4, 64));
  table.rows.push_back(row_of({"merged", merged_layout(), 40, 1, 0, 39, {}}));
  return table;
}

}  // namespace foldkv::test
