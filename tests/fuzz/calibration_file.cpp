// A calibration file from anywhere: loading it for the model of world.h, reading, saving and merging its sums, and
// solving for a profile.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foldkv/foldkv.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/seal.h"
#include "tests/fuzz/world.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace foldkv::fuzz {
namespace {

void save_again(const foldkv_calibrator* calibrator) {
  size_t size = 0;
  must(allowed(foldkv_calibrator_save(calibrator, nullptr, 0, &size, nullptr)), "the sums can be written");
  std::vector<uint8_t> bytes(size);
  must(allowed(foldkv_calibrator_save(calibrator, bytes.data(), size, &size, nullptr)), "the sums can be written");
  foldkv_calibrator* again = nullptr;
  must(allowed(foldkv_calibrator_load(runtime(), model(), bytes.data(), size, &again, nullptr)),
       "what was written can be read");
  foldkv_calibrator_release(again);
}

void solve(const foldkv_calibrator* calibrator, bool use_metric) {
  auto options = sized<foldkv_solve_options>();
  options.use_metric = use_metric ? 1 : 0;
  options.rotate = 1;
  options.scale_group = 8;
  options.correction_rank = 2;
  foldkv_profile* profile = nullptr;
  if (!allowed(foldkv_calibrator_solve(calibrator, &options, &profile, nullptr))) return;
  size_t size = 0;
  must(allowed(foldkv_profile_save(profile, nullptr, 0, &size, nullptr)), "a profile that was solved can be written");
  foldkv_profile_release(profile);
}

void observe_more(foldkv_calibrator* calibrator) {
  std::vector<float> numbers = some_numbers(8 * kKeyWidth, 5);
  const std::vector<foldkv_tensor> layers(kLayers, rows_of(numbers, 8, kKvHeads));
  (void)allowed(foldkv_calibrator_observe(calibrator, layers.data(), layers.data(), kLayers, 0, nullptr));
  (void)allowed(foldkv_calibrator_observe_gradients(calibrator, layers.data(), layers.data(), kLayers, 0, nullptr));
}

}  // namespace
}  // namespace foldkv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foldkv::fuzz;
  foldkv_calibrator* calibrator = nullptr;
  if (!allowed(foldkv_calibrator_load(runtime(), model(), data, size, &calibrator, nullptr))) return 0;
  ++accepted;
  auto info = sized<foldkv_calibrator_info>();
  must(allowed(foldkv_calibrator_get_info(calibrator, &info, nullptr)), "the calibrator says what it is");
  save_again(calibrator);
  solve(calibrator, info.gradient_rows > 0);
  observe_more(calibrator);
  foldkv_calibrator* other = nullptr;
  if (allowed(foldkv_calibrator_load(runtime(), model(), data, size, &other, nullptr))) {
    (void)allowed(foldkv_calibrator_merge(calibrator, other, nullptr));
    foldkv_calibrator_release(other);
  }
  solve(calibrator, false);
  foldkv_calibrator_release(calibrator);
  return 0;
}

// Half of the files keep a checksum that fits.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  return seed % 2 == 0 ? size : foldkv::fuzz::seal(data, size);
}
