#pragma once

namespace foldkv::backend::cpu {

// While it lives, oneDNN runs on the calling thread alone: our own pool decides what runs where, and a second pool
// beneath it would fight for the cores. The thread's OpenMP setting is put back at the end.
class SingleOpenmpThread {
 public:
  SingleOpenmpThread();
  ~SingleOpenmpThread();
  SingleOpenmpThread(const SingleOpenmpThread&) = delete;
  SingleOpenmpThread& operator=(const SingleOpenmpThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace foldkv::backend::cpu
