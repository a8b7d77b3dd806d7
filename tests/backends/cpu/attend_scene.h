#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "backends/interface/backend.h"
#include "tests/support/exact_pages.h"
#include "tests/support/latent_pages.h"
#include "tests/support/layer_group.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::test {

struct SceneShape {
  int64_t query_heads = 6;
  int64_t kv_heads = 2;
  int64_t head_size = 24;
  int64_t latents = 600;
  int64_t exact = 700;
  int64_t rows = 700;  // the last of the exact tokens
  int64_t window = 0;
  uint64_t seed = 1;
};

// A sequence with latents, exact tokens and queries, from which parts are asked: some rows, over as many exact tokens
// as there would be if no later row had come yet.
class Scene {
 public:
  Scene(const SceneShape& shape, std::byte fill)
      : shape_(shape),
        random_(shape.seed),
        layout_(make_latent_layout(shape)),
        latents_(layout_, shape.latents + kSpare, fill),
        exact_({32, width(), NumberFormat::kF16}, shape.exact + kSpare, fill),
        latent_positions_(run_of_positions(0, shape.latents), 64, fill),
        exact_positions_(run_of_positions(shape.latents, shape.exact), 32, fill),
        query_positions_(run_of_positions(shape.latents + shape.exact - shape.rows, shape.rows)),
        key_basis_(random_basis(random_, width(), layout_.keys.width)),
        value_basis_(random_basis(random_, width(), layout_.values.width)),
        key_mean_(halves(random_.normals<float>(width()))),
        value_mean_(halves(random_.normals<float>(width()))),
        correction_(halves(random_.normals<float>(width() * layout_.correction_rank, 0.1))),
        queries_(random_.normals<float>(shape.rows * row_numbers())) {
    latents_.randomize(random_, 0, shape.latents, 1.0);
    for (int64_t slot = 0; slot < shape.exact; ++slot) {
      exact_.put(backend::Side::kKeys, slot, random_.normals<float>(width()).data());
      exact_.put(backend::Side::kValues, slot, random_.normals<float>(width()).data());
    }
    for (int64_t pair = 0; pair < shape.head_size / 2; ++pair) {
      const double share = 2.0 * static_cast<double>(pair) / static_cast<double>(shape.head_size);
      frequencies_.push_back(std::pow(10000.0, -share));
    }
  }

  [[nodiscard]] int64_t row_numbers() const { return shape_.query_heads * shape_.head_size; }
  [[nodiscard]] const SceneShape& shape() const { return shape_; }

  // Rows [first, first + count), with only the exact tokens up to the last of them when `cut`.
  [[nodiscard]] backend::AttendSequence sequence(int64_t first, int64_t count, int64_t first_row, bool cut) const {
    backend::ExactRegion exact = exact_.region();
    exact.token_count = cut ? shape_.exact - shape_.rows + first + count : shape_.exact;
    backend::LatentRegion latent = {latents_.pool().pages(), shape_.latents, key_mean_.data(), value_mean_.data(),
                                    correction_.data()};
    return {exact, exact_positions_.region(), latent, latent_positions_.region(), first_row, count,
            query_positions_.data() + first};
  }
  // Without tokens: the caller adds those of its sequences.
  [[nodiscard]] backend::AttendShape attend_shape(int64_t rows, int64_t sequences) const {
    return {.query_heads = shape_.query_heads,
            .kv_heads = shape_.kv_heads,
            .head_size = shape_.head_size,
            .key_latent_width = layout_.keys.width,
            .value_latent_width = layout_.values.width,
            .correction_rank = layout_.correction_rank,
            .rows = rows,
            .sequences = sequences};
  }
  [[nodiscard]] backend::AttendRequest request(const backend::Rotation& rotation) const {
    backend::AttendRequest request;
    request.rules = {shape_.query_heads, shape_.kv_heads, shape_.head_size, 0.2, 0.0, shape_.window, rotation};
    request.exact_layout = exact_.layout();
    request.latent = {&layout_, key_basis_.data(), value_basis_.data(), 0};
    return request;
  }
  [[nodiscard]] backend::Rotation rotation() const {
    return {backend::Pairing::kHalfSplit, std::ssize(frequencies_), 1.0, frequencies_.data(), nullptr};
  }
  [[nodiscard]] const float* queries(int64_t row) const { return queries_.data() + row * row_numbers(); }
  // Everything in the pages behind the last tokens.
  void poison_spare_slots() const {
    const std::vector<float> nothing(static_cast<size_t>(width()), std::nanf(""));
    for (int64_t slot = shape_.exact; slot < shape_.exact + kSpare; ++slot) {
      exact_.put(backend::Side::kKeys, slot, nothing.data());
      exact_.put(backend::Side::kValues, slot, nothing.data());
    }
  }

 private:
  static constexpr int64_t kSpare = 40;

  static backend::LatentLayout make_latent_layout(const SceneShape& shape) {
    const int64_t width = shape.kv_heads * shape.head_size;
    return make_layout(make_plane({{width / 2, 5}, {width / 2 + 3, 4}, {2, 0}}, 20),
                       make_plane({{width - 1, 4}}, 128), 3, 64);
  }
  static std::vector<int32_t> run_of_positions(int64_t first, int64_t count) {
    std::vector<int32_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    return positions;
  }
  [[nodiscard]] int64_t width() const { return shape_.kv_heads * shape_.head_size; }

  SceneShape shape_;
  Random random_;
  backend::LatentLayout layout_;
  LatentPages latents_;
  ExactPages exact_;
  PositionPages latent_positions_;
  PositionPages exact_positions_;
  std::vector<int32_t> query_positions_;
  std::vector<float> key_basis_, value_basis_;
  std::vector<uint16_t> key_mean_, value_mean_, correction_;
  std::vector<float> queries_;
  std::vector<double> frequencies_;
};

}  // namespace foldkv::test
