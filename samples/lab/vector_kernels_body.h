// The kernels of vector_kernels.h, compiled once for each instruction set: the including file defines
// LAB_KERNEL_NAMESPACE. Vectors are the compiler's own vector types, of the width of the set's registers. No pragma
// once: nothing but the three kernel files includes this.

#include <cstdint>
#include <cstring>

// Inline functions of a shared header must not be compiled with flags of one instruction set, so half.h is for the
// portable kernels only.
#if defined(__F16C__)
#include <immintrin.h>
#else
#include "samples/lab/half.h"
#endif
#include "samples/lab/vector_kernels.h"

namespace foldkv_lab::LAB_KERNEL_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kWidth = 16;
constexpr int kTileVectors = 4;  // 6 rows x 4 vectors of sums stay in registers
constexpr int kTileRows = 6;
#elif defined(__AVX__)
constexpr int64_t kWidth = 8;
constexpr int kTileVectors = 2;
constexpr int kTileRows = 6;
#else
constexpr int64_t kWidth = 4;
constexpr int kTileVectors = 2;
constexpr int kTileRows = 4;
#endif

typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));
typedef int32_t IntVector __attribute__((vector_size(kWidth * sizeof(int32_t))));

inline Vector load(const float* source) {
  Vector vector;
  std::memcpy(&vector, source, sizeof(vector));
  return vector;
}

inline void store(float* target, const Vector& vector) { std::memcpy(target, &vector, sizeof(vector)); }

inline Vector fill(float number) { return number - Vector{}; }

template <int kRows, int kVectors>
void multiply_tile(const SmallProduct& product, const float* a, const float* b, float* c) {
  Vector sums[kRows][kVectors];
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kVectors; ++i) {
      sums[row][i] = product.accumulate ? load(c + row * product.c_stride + i * kWidth) : Vector{};
    }
  }
  for (int64_t step = 0; step < product.depth; ++step) {
    Vector columns[kVectors];
    for (int i = 0; i < kVectors; ++i) columns[i] = load(b + step * product.b_stride + i * kWidth);
    for (int row = 0; row < kRows; ++row) {
      const Vector factor = fill(a[row * product.a_stride + step]);
      for (int i = 0; i < kVectors; ++i) sums[row][i] += factor * columns[i];
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kVectors; ++i) store(c + row * product.c_stride + i * kWidth, sums[row][i]);
  }
}

// kRows rows, all columns.
template <int kRows>
void multiply_rows(const SmallProduct& product, int64_t first_row) {
  const float* a = product.a + first_row * product.a_stride;
  float* c = product.c + first_row * product.c_stride;
  int64_t column = 0;
  for (; column + kTileVectors * kWidth <= product.columns; column += kTileVectors * kWidth) {
    multiply_tile<kRows, kTileVectors>(product, a, product.b + column, c + column);
  }
  for (; column < product.columns; column += kWidth) {
    multiply_tile<kRows, 1>(product, a, product.b + column, c + column);
  }
}

void multiply(const SmallProduct& product) {
  for (int64_t row = 0; row < product.rows;) {
    // One row alone waits for its own sums: a remainder of one is taken out of the tile before it.
    int64_t take = product.rows - row;
    if (take == kTileRows + 1) take = kTileRows - 1;
    if (take > kTileRows) take = kTileRows;
    switch (take) {
      case 1: multiply_rows<1>(product, row); break;
      case 2: multiply_rows<2>(product, row); break;
      case 3: multiply_rows<3>(product, row); break;
      case 4: multiply_rows<4>(product, row); break;
      case 5: multiply_rows<5>(product, row); break;
      default: multiply_rows<6>(product, row); break;
    }
    row += take;
  }
}

float sum_of(const Vector& vector) {
  float sum = 0;
  for (int64_t i = 0; i < kWidth; ++i) sum += vector[i];
  return sum;
}

// kRows neighbouring rows of the weight: as many streams from memory at once.
template <int kRows>
void multiply_row_tile(const float* weight, const float* input, int64_t columns, float* output) {
  Vector sums[kRows] = {};
  int64_t column = 0;
  for (; column + kWidth <= columns; column += kWidth) {
    const Vector factor = load(input + column);
    for (int row = 0; row < kRows; ++row) sums[row] += load(weight + row * columns + column) * factor;
  }
  for (int row = 0; row < kRows; ++row) {
    float sum = sum_of(sums[row]);
    for (int64_t i = column; i < columns; ++i) sum += weight[row * columns + i] * input[i];
    output[row] += sum;
  }
}

void multiply_row(const float* weight, const float* input, int64_t rows, int64_t columns, float* output) {
  constexpr int kTile = 4;
  int64_t row = 0;
  for (; row + kTile <= rows; row += kTile) {
    multiply_row_tile<kTile>(weight + row * columns, input, columns, output + row);
  }
  for (; row < rows; ++row) multiply_row_tile<1>(weight + row * columns, input, columns, output + row);
}

float maximum(const float* numbers, int64_t count) {
  Vector largest = load(numbers);
  for (int64_t i = kWidth; i < count; i += kWidth) {
    const Vector candidate = load(numbers + i);
    largest = candidate > largest ? candidate : largest;
  }
  float result = largest[0];
  for (int64_t i = 1; i < kWidth; ++i) result = largest[i] > result ? largest[i] : result;
  return result;
}

// exp(x) = 2^n * exp(r) with n = round(x / ln 2), |r| <= ln(2) / 2; the polynomial is exp's series to r^7, whose
// remainder is below half a unit in the last place there.
inline Vector exponential(Vector x) {
  const Vector lowest = fill(-87.0f);
  const IntVector in_range = x > lowest;
  const Vector bounded = in_range ? x : lowest;
  const Vector rounder = fill(0x1.8p23f);  // adding it leaves the rounded integer in the low bits
  const Vector shifted = bounded * 1.44269504f + rounder;
  const Vector whole = shifted - rounder;
  const Vector rest = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
  Vector sum = rest * (1.0f / 5040.0f) + 1.0f / 720.0f;
  sum = sum * rest + 1.0f / 120.0f;
  sum = sum * rest + 1.0f / 24.0f;
  sum = sum * rest + 1.0f / 6.0f;
  sum = sum * rest + 0.5f;
  sum = sum * rest + 1.0f;
  sum = sum * rest + 1.0f;
  IntVector exponent;
  IntVector rounder_bits;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  std::memcpy(&rounder_bits, &rounder, sizeof(rounder_bits));
  const IntVector power_bits = (exponent - rounder_bits + 127) << 23;
  Vector power;
  std::memcpy(&power, &power_bits, sizeof(power));
  return in_range ? sum * power : Vector{};
}

float exponentials(float* numbers, int64_t count, float shift) {
  Vector sums = {};
  for (int64_t i = 0; i < count; i += kWidth) {
    const Vector result = exponential(load(numbers + i) - shift);
    store(numbers + i, result);
    sums += result;
  }
  return sum_of(sums);
}

void scale(float* numbers, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i += kWidth) store(numbers + i, load(numbers + i) * factor);
}

#if defined(__F16C__)
void widen_halves(const uint16_t* halves, float* numbers, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(halves + i));
    _mm256_storeu_ps(numbers + i, _mm256_cvtph_ps(packed));
  }
}
#else
void widen_halves(const uint16_t* halves, float* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = half_to_float(halves[i]);
}
#endif

}  // namespace

extern const VectorKernels kKernels;

}  // namespace foldkv_lab::LAB_KERNEL_NAMESPACE
