#pragma once

#include <cstdint>
#include <span>
#include <string>

// A stable 64-bit hash (XXH3) of a stream of values. The same on every machine and in every version, since it is
// stored in files.
namespace foldkv {

class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;

  Fingerprint& add(int64_t value);
  Fingerprint& add(uint64_t value);
  Fingerprint& add(double value);
  Fingerprint& add(const std::string& text);
  Fingerprint& add(std::span<const float> values);
  Fingerprint& add(std::span<const double> values);
  Fingerprint& add_bytes(const void* bytes, size_t size);
  [[nodiscard]] uint64_t value() const;

 private:
  void* state_;
};

[[nodiscard]] uint64_t fingerprint_of_bytes(const void* bytes, size_t size);

}  // namespace foldkv
