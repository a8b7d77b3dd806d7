#pragma once

#include "backends/cpu/kernels/codes.h"
#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/heads.h"
#include "backends/cpu/kernels/integers.h"
#include "backends/cpu/kernels/numbers.h"
#include "backends/cpu/kernels/products.h"
#include "backends/cpu/kernels/quantize.h"
#include "backends/cpu/kernels/row_products.h"
#include "backends/cpu/kernels/score.h"
#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/kernels/tiles.h"
#include "backends/cpu/kernels/transpose.h"
#include "backends/cpu/kernels/trellis.h"
#include "backends/cpu/kernels/wide_products.h"

#define FOLDKV_NAME_OF_MACRO(name) #name
#define FOLDKV_NAME_OF(name) FOLDKV_NAME_OF_MACRO(name)

namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET {

extern const Kernels kKernels;
const Kernels kKernels = {
    .name = FOLDKV_NAME_OF(FOLDKV_KERNEL_SET),
    .lanes = kLanes,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
    .all_finite = all_finite,
    .add_in_double = add_in_double,
    .subtract = subtract,
    .to_f64 = to_f64,
    .exponential = exponential_array,
    .hyperbolic_tangent = hyperbolic_tangent_array,
    .norm_head = norm_head,
    .rotation_row = rotation_row,
    .rotate_row = rotate_row,
    .transpose_tile = transpose_tile,
    .untranspose_tile = untranspose_tile,
    .rotation_tile = rotation_tile,
    .rotate_tile = rotate_tile,
    .decode_tile = decode_tile,
    .decode_rows = decode_rows,
    .decode_trellis_tile = decode_trellis_tile,
    .decode_trellis_rows = decode_trellis_rows,
#if defined(__AVX512VNNI__)
    .has_integers = true,
    .integer_row = integer_row,
    .decode_integers = decode_integers,
    .start_integer_sums = start_integer_sums,
    .integer_product = integer_product,
#endif
    .softmax_tile = softmax_tile,
    .score_tile = score_tile,
    .merge_row = merge_row,
    .finish_row = finish_row,
    .matrix_product = matrix_product,
    .row_product = row_product,
    .wide_row_product = wide_row_product,
    .outer_sum = outer_sum,
    .quantize_group = quantize_group,
    .trellis_search = trellis_search,
};

}  // namespace foldkv::backend::cpu::FOLDKV_KERNEL_SET
