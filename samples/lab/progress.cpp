#include "samples/lab/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace foldkv_lab {

Progress::Progress(std::string label, int64_t total, std::string unit)
    : label_(std::move(label)), total_(total), unit_(std::move(unit)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (on_terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::show(int64_t done) {
  if (!on_terminal_ || total_ <= 0) return;
  const int64_t permille = done * 1000 / total_;
  if (permille == last_permille_) return;
  last_permille_ = permille;
  constexpr int kWidth = 30;
  const std::string filled(static_cast<size_t>(permille * kWidth / 1000), '#');
  std::fprintf(stderr, "\r%s [%-*s] %lld / %lld %s\033[K", label_.c_str(), kWidth, filled.c_str(),
               static_cast<long long>(done), static_cast<long long>(total_), unit_.c_str());
  std::fflush(stderr);
}

}  // namespace foldkv_lab
