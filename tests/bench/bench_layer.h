#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "benchmark/benchmark.h"
#include "tests/support/backends.h"
#include "tests/support/exact_pages.h"
#include "tests/support/latent_pages.h"
#include "tests/support/layer_group.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::bench {

// Attention of a model.
struct HeadShape {
  int64_t query_heads;
  int64_t kv_heads;
  int64_t head_size;

  [[nodiscard]] constexpr int64_t key_width() const { return kv_heads * head_size; }
};
inline constexpr HeadShape kSmolLm2 = {9, 3, 64};  // 135M
inline constexpr HeadShape kQwen2 = {14, 2, 64};   // 0.5B
inline constexpr HeadShape kLlama1B = {32, 8, 64};
inline constexpr HeadShape kLlama8B = {32, 8, 128};

struct CachedTokens {
  int64_t latents = 0;  // first
  int64_t exact = 0;    // after them; the queries are those of the last ones, or come after everything
  int64_t rows = 1;     // of queries
};

// One layer of a group of four, which share latents of a layer's key width at 4 bits, and what a sequence has cached of
// it. Numbers are random.
class BenchLayer {
 public:
  BenchLayer(backend::Backend& device, const HeadShape& shape, const CachedTokens& tokens)
      : shape_(shape),
        frequencies_(frequencies(shape.head_size / 2)),
        rotation_(device, {backend::Pairing::kHalfSplit, shape.head_size / 2, 1.0, frequencies_.data(), nullptr}),
        layout_(make_layout(shape)),
        latents_(layout_, tokens.latents, test::kZero),
        exact_({32, shape.key_width(), NumberFormat::kF16}, tokens.exact, test::kZero),
        latent_positions_(positions(0, tokens.latents), layout_.page_tokens, test::kZero),
        exact_positions_(positions(tokens.latents, tokens.exact), 32, test::kZero),
        query_positions_(positions(
            tokens.latents + (tokens.exact >= tokens.rows ? tokens.exact - tokens.rows : tokens.exact), tokens.rows)),
        basis_(test::random_basis(random_, kGroupLayers * shape.key_width(), shape.key_width())),
        fast_basis_(device.fast_basis_bytes(kGroupLayers * shape.key_width(), shape.key_width()), test::kZero),
        mean_(test::halves(random_.normals<float>(kGroupLayers * shape.key_width()))),
        queries_(random_.normals<float>(tokens.rows * shape.query_heads * shape.head_size)),
        context_(queries_.size()),
        workspace_(device.attend_workspace({shape.query_heads, shape.kv_heads, shape.head_size, shape.key_width(),
                                            shape.key_width(), 0, tokens.rows, 1, tokens.latents + tokens.exact}),
                   test::kZero) {
    latents_.randomize(random_, 0, tokens.latents, 1.0);
    for (int64_t slot = 0; slot < tokens.exact; ++slot) {
      exact_.put(backend::Side::kKeys, slot, random_.normals<float>(shape.key_width()).data());
      exact_.put(backend::Side::kValues, slot, random_.normals<float>(shape.key_width()).data());
    }
    const int64_t width = shape.key_width();
    if (!device.prepare_fast_basis(basis_.data(), kGroupLayers * width, width, fast_basis_.data()).ok()) std::abort();
    sequence_ = {.exact = exact_.region(),
                 .exact_positions = exact_positions_.region(),
                 .latent = {latents_.pool().pages(), tokens.latents, mean_.data(), mean_.data(), nullptr},
                 .latent_positions = latent_positions_.region(),
                 .row_count = tokens.rows,
                 .query_positions = query_positions_.data()};
  }

  void attend(backend::Backend& device, backend::Arithmetic arithmetic) {
    const backend::AttendRequest request = {
        .rules = {shape_.query_heads, shape_.kv_heads, shape_.head_size,
                  1.0 / std::sqrt(static_cast<double>(shape_.head_size)), 0.0, 0, rotation_.get()},
        .exact_layout = exact_.layout(),
        .latent = {&layout_, basis_.data(), basis_.data(), 0, fast_basis_.bytes() > 0 ? fast_basis_.data() : nullptr},
        .arithmetic = arithmetic,
        .sequences = {&sequence_, 1},
        .queries = queries_.data(),
        .context = context_.data(),
        .workspace = workspace_.data()};
    if (!device.attend(request).ok()) std::abort();
    benchmark::DoNotOptimize(context_.data());
  }

 private:
  static constexpr int64_t kGroupLayers = 4;

  static std::vector<double> frequencies(int64_t pairs) {
    std::vector<double> result;
    for (int64_t pair = 0; pair < pairs; ++pair) {
      result.push_back(std::pow(500000.0, -static_cast<double>(pair) / static_cast<double>(pairs)));
    }
    return result;
  }
  static std::vector<int32_t> positions(int64_t first, int64_t count) {
    std::vector<int32_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
    return positions;
  }
  static backend::LatentLayout make_layout(const HeadShape& shape) {
    const backend::LatentPlane plane = test::make_plane({{shape.key_width(), 4}}, 128);
    return test::make_layout(plane, plane, 0, 64);
  }

  test::Random random_{1};
  HeadShape shape_;
  std::vector<double> frequencies_;
  test::PreparedRotation rotation_;
  backend::LatentLayout layout_;
  test::LatentPages latents_;
  test::ExactPages exact_;
  test::PositionPages latent_positions_;
  test::PositionPages exact_positions_;
  std::vector<int32_t> query_positions_;
  std::vector<float> basis_;
  test::MemoryBlock fast_basis_;
  std::vector<uint16_t> mean_;
  std::vector<float> queries_;
  std::vector<float> context_;
  test::MemoryBlock workspace_;
  backend::AttendSequence sequence_;
};

}  // namespace foldkv::bench
