#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/table.h"

namespace foldkv::test {
namespace {

struct SupportCase {
  backend::AttentionRules rules;
  std::vector<LatentBand> bands;  // empty: no latents
  bool supported = true;
};

Outcome run(const SupportCase& support_case, backend::Backend& backend) {
  Outcome outcome;
  const backend::LatentPlane plane = make_plane(support_case.bands, 64);
  const backend::LatentLayout layout = make_layout(plane, plane, 0, 64);
  const Status status = backend.check_attention(support_case.rules, support_case.bands.empty() ? nullptr : &layout);
  outcome.expect(status.ok() == support_case.supported, "supported and should not be, or the other way round");
  outcome.expect(status.ok() || absl::IsUnimplemented(status), "refused with another error than unsupported");
  outcome.expect(status.ok() || status.message().size() > 10, "refused without a reason");
  return outcome;
}

Row row_of(std::string name, const SupportCase& support_case) {
  return {std::move(name), [support_case](backend::Backend& backend, std::byte) { return run(support_case, backend); }};
}

}  // namespace

OperationRows check_attention_rows() {
  OperationRows table{Operation::kCheckAttention, {}, nullptr};
  for (const int64_t head_size : {1, 2, 3, 6, 8, 16, 64, 80, 96, 100, 128, 192, 256, 320}) {
    for (const int64_t ratio : {1, 2, 3, 5, 7, 9, 71}) {
      const backend::AttentionRules rules{3 * ratio, 3, head_size, 0.1, 0.0, 0, {}};
      table.rows.push_back(row_of(absl::StrCat("head size ", head_size, " ratio ", ratio), {rules, {}, true}));
    }
  }
  const backend::AttentionRules rules{4, 2, 64, 0.125, 30.0, 512, {}};
  for (int32_t bits = 2; bits <= 8; ++bits) {
    table.rows.push_back(row_of(absl::StrCat(bits, " bits"), {rules, {{70, bits}, {10, 0}}, true}));
  }
  table.rows.push_back(row_of("1 bit", {rules, {{64, 4}, {64, 1}}, false}));
  table.rows.push_back(row_of("9 bits", {rules, {{64, 9}}, false}));
  table.rows.push_back(row_of("4 query heads over 3", {{4, 3, 64, 0.125, 0.0, 0, {}}, {}, false}));
  table.rows.push_back(row_of("a head of a million", {{1, 1, 1000000, 0.125, 0.0, 0, {}}, {}, false}));
  return table;
}

}  // namespace foldkv::test
