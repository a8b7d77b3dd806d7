#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/exact_pages.h"
#include "tests/support/slots.h"

namespace foldkv::test {
namespace {

using backend::Side;

struct MoveCase {
  backend::ExactLayout layout;
  int64_t tokens = 0;
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
  std::vector<int32_t> slots;  // empty: from, from + 1 ...
};

Outcome run(const MoveCase& move_case, backend::Backend& backend, std::byte fill) {
  const ExactPages pages(move_case.layout, move_case.tokens, fill);
  Random random(16);
  for (const Side side : {Side::kKeys, Side::kValues}) {
    pages.put_rows(side, 0, random.normals<float>(move_case.tokens * move_case.layout.width));
  }
  Outcome outcome;
  outcome.set_status(backend.move_rows({move_case.layout, pages.region(), move_case.from, move_case.to, move_case.count,
                                        move_case.slots.empty() ? nullptr : move_case.slots.data()}));
  outcome.expect(pages.pool().canaries_alive(), "written beyond the pages");
  for (const Side side : {Side::kKeys, Side::kValues}) {
    outcome.fields.push_back(equal_field(side == Side::kKeys ? "keys" : "values",
                                         pages.numbers(side, 0, move_case.tokens), move_case.layout.width));
  }
  return outcome;
}

Row row_of(const MoveCase& move_case) {
  return {absl::StrCat(move_case.count, " rows of ", move_case.layout.width, " ",
                       std::string(name_of(move_case.layout.format)), " from ", move_case.from,
                       move_case.slots.empty() ? "" : " and beyond", " to ", move_case.to,
                       " in pages of ", move_case.layout.page_tokens),
          [move_case](backend::Backend& backend, std::byte fill) { return run(move_case, backend, fill); }};
}

Row random_row(Random& random) {
  MoveCase move_case;
  move_case.layout = {random.between(1, 9), random.between(1, 70), random.pick(all_formats())};
  move_case.tokens = random.between(1, 60);
  move_case.from = random.between(0, move_case.tokens);
  move_case.to = random.between(0, move_case.from);
  move_case.count = random.between(0, move_case.tokens - move_case.from);
  if (random.chance(0.6)) {
    move_case.slots = random_slots(random, move_case.to, move_case.tokens, random.uniform());
    move_case.count = std::ssize(move_case.slots);
  }
  return row_of(move_case);
}

}  // namespace

OperationRows move_rows_rows() {
  OperationRows table{Operation::kMoveRows, {}, random_row};
  for (const NumberFormat format : all_formats()) {
    for (const int64_t page_tokens : {1, 4, 32}) {
      const backend::ExactLayout layout{page_tokens, 5, format};
      table.rows.push_back(row_of({layout, 40, 0, 0, 40}));  // onto itself
      table.rows.push_back(row_of({layout, 40, 1, 0, 39}));  // overlapping
      table.rows.push_back(row_of({layout, 40, 20, 17, 20}));
      table.rows.push_back(row_of({layout, 40, 30, 3, 10}));  // apart
      table.rows.push_back(row_of({layout, 40, 36, 4, 4}));   // whole pages of 4
      table.rows.push_back(row_of({layout, 40, 40, 4, 0}));   // nothing
      table.rows.push_back(row_of({layout, 40, 0, 2, 5, {2, 3, 9, 10, 39}}));
      table.rows.push_back(row_of({layout, 40, 0, 0, 4, {0, 1, 2, 3}}));
    }
  }
  return table;
}

}  // namespace foldkv::test
