#pragma once

#include <cstdint>

namespace foldkv::test {

// Steele, Lea and Flood's SplitMix64: numbers that depend on the seed alone, on every machine.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15ULL;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
    return mixed ^ mixed >> 31;
  }
  // Between -1 and 1.
  float next_number() { return static_cast<float>(static_cast<int64_t>(next()) >> 40) * 0x1p-23F; }

 private:
  uint64_t state_;
};

}  // namespace foldkv::test
