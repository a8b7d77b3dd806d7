#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>

namespace foldkv::fuzz {
namespace {

size_t below(size_t end, test::Random& random) {
  return end == 0 ? 0 : static_cast<size_t>(random.between(0, static_cast<int64_t>(end) - 1));
}

// Numbers at which arithmetic on sizes, and on floats read as such, goes wrong.
constexpr uint64_t kExtremes[] = {0,
                                  1,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  0x7fff,
                                  0x8000,
                                  0xffff,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  0x100000000,
                                  0x7fffffffffffffff,
                                  0x8000000000000000,
                                  0xffffffffffffffff,
                                  0x7f800000,           // infinity in f32
                                  0x7fc00000,           // no number in f32
                                  0x7ff0000000000000,   // infinity in f64
                                  0x7ff8000000000000};  // no number in f64

void write_extreme(uint8_t* data, size_t size, test::Random& random) {
  const size_t width = std::min(size, size_t{1} << random.between(0, 3));
  // Most numbers in files are aligned.
  size_t at = below(size - width + 1, random);
  if (random.chance(0.75)) at -= at % width;
  uint64_t number = kExtremes[below(std::size(kExtremes), random)];
  if (random.chance(0.25)) number += static_cast<uint64_t>(random.between(-3, 3));
  for (size_t i = 0; i < width; ++i) data[at + i] = static_cast<uint8_t>(number >> (8 * i));
}

size_t cut_out(uint8_t* data, size_t size, test::Random& random) {
  if (size < 2) return size;
  const size_t at = below(size, random);
  const size_t count = 1 + below(std::min(size - at, size - 1), random);
  std::memmove(data + at, data + at + count, size - at - count);
  return size - count;
}

size_t double_piece(uint8_t* data, size_t size, size_t capacity, test::Random& random) {
  const size_t at = below(size, random);
  const size_t count = std::min({1 + below(64, random), size - at, capacity - size});
  std::memmove(data + at + count, data + at, size - at);
  return size + count;
}

void move_piece(uint8_t* data, size_t size, test::Random& random) {
  const size_t from = below(size, random), to = below(size, random);
  const size_t count = std::min(1 + below(32, random), size - std::max(from, to));
  std::memmove(data + to, data + from, count);
}

size_t edit(uint8_t* data, size_t size, size_t capacity, test::Random& random) {
  switch (random.between(0, 9)) {
    case 0:
    case 1:
    case 2: data[below(size, random)] ^= static_cast<uint8_t>(1u << random.between(0, 7)); return size;
    case 3: data[below(size, random)] = static_cast<uint8_t>(random.between(0, 255)); return size;
    case 4:
    case 5: write_extreme(data, size, random); return size;
    case 6: return cut_out(data, size, random);
    case 7: return double_piece(data, size, capacity, random);
    case 8: move_piece(data, size, random); return size;
    default: return 1 + below(size, random);
  }
}

}  // namespace

size_t mutate(uint8_t* data, size_t size, size_t capacity, test::Random& random) {
  if (size == 0) {
    data[0] = static_cast<uint8_t>(random.between(0, 255));
    size = 1;
  }
  // Most often one: what is changed little gets far.
  const int64_t edits = random.chance(0.5) ? 1 : random.between(2, 4);
  for (int64_t i = 0; i < edits; ++i) size = edit(data, size, capacity, random);
  return size;
}

std::vector<uint8_t> splice(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, test::Random& random) {
  const auto head = static_cast<std::ptrdiff_t>(below(a.size() + 1, random));
  const auto tail = static_cast<std::ptrdiff_t>(below(b.size() + 1, random));
  std::vector<uint8_t> spliced(a.begin(), a.begin() + head);
  spliced.insert(spliced.end(), b.begin() + tail, b.end());
  return spliced;
}

}  // namespace foldkv::fuzz
