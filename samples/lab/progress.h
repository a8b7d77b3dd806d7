#pragma once

#include <cstdint>
#include <string>

namespace foldkv_lab {

// One line on the terminal that says how far a long command is. Silent when the standard error is no terminal.
class Progress {
 public:
  // unit: what is counted, "tokens" for example.
  Progress(std::string label, int64_t total, std::string unit);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int64_t done);

 private:
  std::string label_;
  int64_t total_;
  std::string unit_;
  bool on_terminal_;
  int64_t last_permille_ = -1;
};

}  // namespace foldkv_lab
