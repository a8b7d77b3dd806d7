#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/interface/layout.h"
#include "tests/support/number_io.h"
#include "tests/support/page_pool.h"

namespace foldkv::test {

// The exact region of one layer.
class ExactPages {
 public:
  ExactPages(const backend::ExactLayout& layout, int64_t tokens, std::byte fill)
      : layout_(layout), tokens_(tokens), pool_(tokens, layout.page_tokens, layout.page_bytes(), fill) {}

  [[nodiscard]] backend::ExactRegion region() const { return {pool_.pages(), tokens_}; }
  [[nodiscard]] const backend::ExactLayout& layout() const { return layout_; }
  [[nodiscard]] const PagePool& pool() const { return pool_; }

  [[nodiscard]] std::byte* row(backend::Side side, int64_t slot) const {
    return pool_.page_of(slot) + layout_.side_offset(side) + pool_.row_of(slot) * layout_.row_bytes();
  }
  // numbers [width], rounded to the format
  void put(backend::Side side, int64_t slot, const float* numbers) const {
    for (int64_t i = 0; i < layout_.width; ++i) put_number(layout_.format, row(side, slot), i, numbers[i]);
  }
  // numbers [count][width] into slots [first, first + count)
  void put_rows(backend::Side side, int64_t first, std::span<const float> numbers) const {
    const int64_t count = static_cast<int64_t>(numbers.size()) / layout_.width;
    for (int64_t i = 0; i < count; ++i) put(side, first + i, numbers.data() + i * layout_.width);
  }
  // [count][width]
  [[nodiscard]] std::vector<double> numbers(backend::Side side, int64_t first, int64_t count) const {
    std::vector<double> all;
    for (int64_t slot = first; slot < first + count; ++slot) {
      for (int64_t i = 0; i < layout_.width; ++i) {
        all.push_back(static_cast<double>(number_at(layout_.format, row(side, slot), i)));
      }
    }
    return all;
  }

 private:
  backend::ExactLayout layout_;
  int64_t tokens_;
  PagePool pool_;
};

}  // namespace foldkv::test
