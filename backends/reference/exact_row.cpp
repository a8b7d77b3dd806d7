#include "backends/reference/exact_row.h"

#include "backends/reference/numbers.h"

namespace foldkv::backend::reference {

void read_stacked_row(const StackedRows& rows, int64_t index, double* row) {
  for (const ExactRegion& layer : rows.layers) {
    const std::byte* const data = exact_row(rows.layout, layer.pages, rows.slot(index), rows.side);
    read_numbers(rows.layout.format, data, rows.layout.width, row);
    row += rows.layout.width;
  }
}

}  // namespace foldkv::backend::reference
