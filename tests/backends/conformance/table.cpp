#include "tests/backends/conformance/table.h"

namespace foldkv::test {

std::vector<OperationRows> operation_table() {
  return {memory_rows(),       copy_rows(),         rotation_rows(), check_attention_rows(), product_rows(),
          all_finite_rows(),   convert_rows(),      prepare_heads_rows(), append_rows(),     move_rows_rows(),
          attend_rows(),       score_rows(),        mean_rows(),     encode_rows(),          rebuild_rows(),
          sketch_rows(),       coefficients_rows(), move_latents_rows(), moments_rows()};
}

}  // namespace foldkv::test
