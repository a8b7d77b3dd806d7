/*
 * The layout of every public struct and the value of every enumerator, by name, as hosts in other languages wrote it
 * down. A line here may be added, when a field is appended; it never changes. Fields are named as well as placed, since
 * sizes alone miss a field that left while another came.
 */
#include <stddef.h>
#include <stdint.h>

#include "foldkv/foldkv.h"

#define STRUCT(type, size) _Static_assert(sizeof(type) == (size), "sizeof " #type " is not " #size)
#define FIELD(type, field, offset, size)                                                               \
  _Static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field " is not " #offset); \
  _Static_assert(sizeof(((type*)0)->field) == (size), "size of " #type "." #field " is not " #size)
#define VALUE(enumerator, value) _Static_assert((enumerator) == (value), #enumerator " is not " #value)

_Static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8, "these are the sizes of a 64-bit machine");
_Static_assert(FOLDKV_ABI_VERSION == 1, "the layouts below are those of version 1");

STRUCT(foldkv_error, 520);
FIELD(foldkv_error, struct_size, 0, 4);
FIELD(foldkv_error, status, 4, 4);
FIELD(foldkv_error, native_code, 8, 4);
FIELD(foldkv_error, argument, 12, 64);
FIELD(foldkv_error, message, 76, 444);

STRUCT(foldkv_backend_info, 264);
FIELD(foldkv_backend_info, struct_size, 0, 4);
FIELD(foldkv_backend_info, device_count, 4, 4);
FIELD(foldkv_backend_info, name, 8, 32);
FIELD(foldkv_backend_info, instruction_set, 40, 32);
FIELD(foldkv_backend_info, description, 72, 192);

STRUCT(foldkv_tensor, 88);
FIELD(foldkv_tensor, data, 0, 8);
FIELD(foldkv_tensor, dtype, 8, 4);
FIELD(foldkv_tensor, device, 12, 4);
FIELD(foldkv_tensor, rank, 16, 4);
FIELD(foldkv_tensor, reserved, 20, 4);
FIELD(foldkv_tensor, shape, 24, 32);
FIELD(foldkv_tensor, strides, 56, 32);

STRUCT(foldkv_runtime_options, 104);
FIELD(foldkv_runtime_options, struct_size, 0, 4);
FIELD(foldkv_runtime_options, device, 4, 4);
FIELD(foldkv_runtime_options, backend, 8, 8);
FIELD(foldkv_runtime_options, budget_bytes, 16, 8);
FIELD(foldkv_runtime_options, threads, 24, 4);
FIELD(foldkv_runtime_options, deterministic, 28, 4);
FIELD(foldkv_runtime_options, instruction_set, 32, 8);
FIELD(foldkv_runtime_options, parallel_for, 40, 8);
FIELD(foldkv_runtime_options, parallel_for_context, 48, 8);
FIELD(foldkv_runtime_options, log, 56, 8);
FIELD(foldkv_runtime_options, log_context, 64, 8);
FIELD(foldkv_runtime_options, pressure, 72, 8);
FIELD(foldkv_runtime_options, pressure_context, 80, 8);
FIELD(foldkv_runtime_options, spill_directory, 88, 8);
FIELD(foldkv_runtime_options, measure_times, 96, 4);
FIELD(foldkv_runtime_options, reserved, 100, 4);

STRUCT(foldkv_ledger, 72);
FIELD(foldkv_ledger, struct_size, 0, 4);
FIELD(foldkv_ledger, reserved, 4, 4);
FIELD(foldkv_ledger, exact, 8, 8);
FIELD(foldkv_ledger, latent, 16, 8);
FIELD(foldkv_ledger, correction, 24, 8);
FIELD(foldkv_ledger, mean, 32, 8);
FIELD(foldkv_ledger, positions, 40, 8);
FIELD(foldkv_ledger, profile, 48, 8);
FIELD(foldkv_ledger, model, 56, 8);
FIELD(foldkv_ledger, scratch, 64, 8);

STRUCT(foldkv_runtime_stats, 208);
FIELD(foldkv_runtime_stats, struct_size, 0, 4);
FIELD(foldkv_runtime_stats, threads, 4, 4);
FIELD(foldkv_runtime_stats, budget_bytes, 8, 8);
FIELD(foldkv_runtime_stats, used_bytes, 16, 8);
FIELD(foldkv_runtime_stats, peak_bytes, 24, 8);
FIELD(foldkv_runtime_stats, resident_bytes, 32, 8);
FIELD(foldkv_runtime_stats, largest_free_bytes, 40, 8);
FIELD(foldkv_runtime_stats, ledger, 48, 72);
FIELD(foldkv_runtime_stats, backend, 120, 32);
FIELD(foldkv_runtime_stats, instruction_set, 152, 32);
FIELD(foldkv_runtime_stats, sequence_count, 184, 8);
FIELD(foldkv_runtime_stats, spilled_sequences, 192, 8);
FIELD(foldkv_runtime_stats, spilled_bytes, 200, 8);

STRUCT(foldkv_rotation, 32);
FIELD(foldkv_rotation, struct_size, 0, 4);
FIELD(foldkv_rotation, pairing, 4, 4);
FIELD(foldkv_rotation, inverse_frequencies, 8, 8);
FIELD(foldkv_rotation, frequency_count, 16, 4);
FIELD(foldkv_rotation, reserved, 20, 4);
FIELD(foldkv_rotation, scale, 24, 8);

STRUCT(foldkv_layer, 72);
FIELD(foldkv_layer, struct_size, 0, 4);
FIELD(foldkv_layer, query_heads, 4, 4);
FIELD(foldkv_layer, kv_heads, 8, 4);
FIELD(foldkv_layer, head_size, 12, 4);
FIELD(foldkv_layer, rotation, 16, 8);
FIELD(foldkv_layer, window, 24, 8);
FIELD(foldkv_layer, attention_scale, 32, 8);
FIELD(foldkv_layer, soft_cap, 40, 8);
FIELD(foldkv_layer, query_norm, 48, 8);
FIELD(foldkv_layer, key_norm, 56, 8);
FIELD(foldkv_layer, norm_epsilon, 64, 8);

STRUCT(foldkv_model_options, 32);
FIELD(foldkv_model_options, struct_size, 0, 4);
FIELD(foldkv_model_options, layer_count, 4, 4);
FIELD(foldkv_model_options, layers, 8, 8);
FIELD(foldkv_model_options, hidden_size, 16, 8);
FIELD(foldkv_model_options, name, 24, 8);

STRUCT(foldkv_layer_weights, 712);
FIELD(foldkv_layer_weights, struct_size, 0, 4);
FIELD(foldkv_layer_weights, reserved, 4, 4);
FIELD(foldkv_layer_weights, query, 8, 88);
FIELD(foldkv_layer_weights, key, 96, 88);
FIELD(foldkv_layer_weights, value, 184, 88);
FIELD(foldkv_layer_weights, output, 272, 88);
FIELD(foldkv_layer_weights, query_bias, 360, 88);
FIELD(foldkv_layer_weights, key_bias, 448, 88);
FIELD(foldkv_layer_weights, value_bias, 536, 88);
FIELD(foldkv_layer_weights, output_bias, 624, 88);

STRUCT(foldkv_profile_info, 256);
FIELD(foldkv_profile_info, struct_size, 0, 4);
FIELD(foldkv_profile_info, layer_count, 4, 4);
FIELD(foldkv_profile_info, group_count, 8, 4);
FIELD(foldkv_profile_info, centred, 12, 4);
FIELD(foldkv_profile_info, model_fingerprint, 16, 8);
FIELD(foldkv_profile_info, fingerprint, 24, 8);
FIELD(foldkv_profile_info, calibration_tokens, 32, 8);
FIELD(foldkv_profile_info, calibration_samples, 40, 8);
FIELD(foldkv_profile_info, model_name, 48, 128);
FIELD(foldkv_profile_info, made_by, 176, 64);
FIELD(foldkv_profile_info, plan_count, 240, 4);
FIELD(foldkv_profile_info, reserved, 244, 4);
FIELD(foldkv_profile_info, shrinkage, 248, 8);

STRUCT(foldkv_plan_info, 80);
FIELD(foldkv_plan_info, struct_size, 0, 4);
FIELD(foldkv_plan_info, reserved, 4, 4);
FIELD(foldkv_plan_info, name, 8, 32);
FIELD(foldkv_plan_info, bytes_per_token, 40, 8);
FIELD(foldkv_plan_info, full_bytes_per_token, 48, 8);
FIELD(foldkv_plan_info, expected_cost, 56, 8);
FIELD(foldkv_plan_info, held_out_divergence, 64, 8);
FIELD(foldkv_plan_info, held_out_tokens, 72, 8);

STRUCT(foldkv_calibrator_info, 32);
FIELD(foldkv_calibrator_info, struct_size, 0, 4);
FIELD(foldkv_calibrator_info, group_count, 4, 4);
FIELD(foldkv_calibrator_info, samples, 8, 8);
FIELD(foldkv_calibrator_info, rows, 16, 8);
FIELD(foldkv_calibrator_info, gradient_rows, 24, 8);

STRUCT(foldkv_plan_options, 48);
FIELD(foldkv_plan_options, struct_size, 0, 4);
FIELD(foldkv_plan_options, reserved, 4, 4);
FIELD(foldkv_plan_options, name, 8, 8);
FIELD(foldkv_plan_options, bytes_per_token, 16, 8);
FIELD(foldkv_plan_options, ratio, 24, 8);
FIELD(foldkv_plan_options, value_weight, 32, 8);
FIELD(foldkv_plan_options, group_weights, 40, 8);

STRUCT(foldkv_group_info, 80);
FIELD(foldkv_group_info, struct_size, 0, 4);
FIELD(foldkv_group_info, layer_count, 4, 4);
FIELD(foldkv_group_info, key_width, 8, 4);
FIELD(foldkv_group_info, key_latent_width, 12, 4);
FIELD(foldkv_group_info, value_latent_width, 16, 4);
FIELD(foldkv_group_info, key_band_count, 20, 4);
FIELD(foldkv_group_info, value_band_count, 24, 4);
FIELD(foldkv_group_info, scale_group, 28, 4);
FIELD(foldkv_group_info, rotated, 32, 4);
FIELD(foldkv_group_info, correction_rank, 36, 4);
FIELD(foldkv_group_info, bytes_per_token, 40, 8);
FIELD(foldkv_group_info, bytes_per_sequence, 48, 8);
FIELD(foldkv_group_info, kind, 56, 4);
FIELD(foldkv_group_info, reserved, 60, 4);
FIELD(foldkv_group_info, expected_key_cost, 64, 8);
FIELD(foldkv_group_info, expected_value_cost, 72, 8);

STRUCT(foldkv_band, 16);
FIELD(foldkv_band, width, 0, 4);
FIELD(foldkv_band, bits, 4, 4);
FIELD(foldkv_band, code, 8, 4);
FIELD(foldkv_band, step, 12, 4);

STRUCT(foldkv_codec_options, 56);
FIELD(foldkv_codec_options, struct_size, 0, 4);
FIELD(foldkv_codec_options, codec, 4, 4);
FIELD(foldkv_codec_options, bits, 8, 4);
FIELD(foldkv_codec_options, layers_per_group, 12, 4);
FIELD(foldkv_codec_options, key_rank, 16, 4);
FIELD(foldkv_codec_options, value_rank, 20, 4);
FIELD(foldkv_codec_options, interpolation, 24, 8);
FIELD(foldkv_codec_options, retained, 32, 8);
FIELD(foldkv_codec_options, first_layer, 40, 4);
FIELD(foldkv_codec_options, reserved, 44, 4);
FIELD(foldkv_codec_options, sources, 48, 8);

STRUCT(foldkv_layer_group, 16);
FIELD(foldkv_layer_group, struct_size, 0, 4);
FIELD(foldkv_layer_group, layer_count, 4, 4);
FIELD(foldkv_layer_group, layers, 8, 8);

STRUCT(foldkv_calibrator_options, 24);
FIELD(foldkv_calibrator_options, struct_size, 0, 4);
FIELD(foldkv_calibrator_options, layers_per_group, 4, 4);
FIELD(foldkv_calibrator_options, groups, 8, 8);
FIELD(foldkv_calibrator_options, group_count, 16, 4);
FIELD(foldkv_calibrator_options, skip_tokens, 20, 4);

STRUCT(foldkv_solve_options, 88);
FIELD(foldkv_solve_options, struct_size, 0, 4);
FIELD(foldkv_solve_options, latent_width, 4, 4);
FIELD(foldkv_solve_options, bits, 8, 4);
FIELD(foldkv_solve_options, scale_group, 12, 4);
FIELD(foldkv_solve_options, rotate, 16, 4);
FIELD(foldkv_solve_options, uncentred, 20, 4);
FIELD(foldkv_solve_options, key_bands, 24, 8);
FIELD(foldkv_solve_options, value_bands, 32, 8);
FIELD(foldkv_solve_options, key_band_count, 40, 4);
FIELD(foldkv_solve_options, value_band_count, 44, 4);
FIELD(foldkv_solve_options, correction_rank, 48, 4);
FIELD(foldkv_solve_options, correction_oversample, 52, 4);
FIELD(foldkv_solve_options, correction_iterations, 56, 4);
FIELD(foldkv_solve_options, use_metric, 60, 4);
FIELD(foldkv_solve_options, seed, 64, 8);
FIELD(foldkv_solve_options, metric_floor, 72, 8);
FIELD(foldkv_solve_options, cancel, 80, 8);

STRUCT(foldkv_position_range, 16);
FIELD(foldkv_position_range, first, 0, 8);
FIELD(foldkv_position_range, end, 8, 8);

STRUCT(foldkv_eviction, 304);
FIELD(foldkv_eviction, struct_size, 0, 4);
FIELD(foldkv_eviction, scorer, 4, 4);
FIELD(foldkv_eviction, row_reduction, 8, 4);
FIELD(foldkv_eviction, pooling, 12, 4);
FIELD(foldkv_eviction, pool_width, 16, 4);
FIELD(foldkv_eviction, pool_after_heads, 20, 4);
FIELD(foldkv_eviction, pool_over_protected, 24, 4);
FIELD(foldkv_eviction, head_reduction, 28, 4);
FIELD(foldkv_eviction, raise_to_mean, 32, 4);
FIELD(foldkv_eviction, weighting, 36, 4);
FIELD(foldkv_eviction, scope, 40, 4);
FIELD(foldkv_eviction, layer_allocator, 44, 4);
FIELD(foldkv_eviction, head_allocator, 48, 4);
FIELD(foldkv_eviction, window_tokens, 52, 4);
FIELD(foldkv_eviction, sink_tokens, 56, 4);
FIELD(foldkv_eviction, recent_tokens, 60, 4);
FIELD(foldkv_eviction, interval, 64, 4);
FIELD(foldkv_eviction, reindexed, 68, 4);
FIELD(foldkv_eviction, first_stage_by_mean, 72, 4);
FIELD(foldkv_eviction, ratio_of_unprotected, 76, 4);
FIELD(foldkv_eviction, author_rounding, 80, 4);
FIELD(foldkv_eviction, voting_heads, 84, 4);
FIELD(foldkv_eviction, future_tokens, 88, 4);
FIELD(foldkv_eviction, without_covariance, 92, 4);
FIELD(foldkv_eviction, budget_tokens, 96, 8);
FIELD(foldkv_eviction, keep_ratio, 104, 8);
FIELD(foldkv_eviction, window_share, 112, 8);
FIELD(foldkv_eviction, recent_share, 120, 8);
FIELD(foldkv_eviction, gamma, 128, 8);
FIELD(foldkv_eviction, newest_row_weight, 136, 8);
FIELD(foldkv_eviction, epsilon, 144, 8);
FIELD(foldkv_eviction, first_stage_share, 152, 8);
FIELD(foldkv_eviction, first_stage_mass, 160, 8);
FIELD(foldkv_eviction, beta, 168, 8);
FIELD(foldkv_eviction, ripple_ratio, 176, 8);
FIELD(foldkv_eviction, ripple_gamma, 184, 8);
FIELD(foldkv_eviction, entropy_temperature, 192, 8);
FIELD(foldkv_eviction, variance_temperature, 200, 8);
FIELD(foldkv_eviction, most_ratio, 208, 8);
FIELD(foldkv_eviction, sharpness, 216, 8);
FIELD(foldkv_eviction, decay, 224, 8);
FIELD(foldkv_eviction, head_floor_share, 232, 8);
FIELD(foldkv_eviction, floor_tokens, 240, 4);
FIELD(foldkv_eviction, ripple_normalize_first, 244, 4);
FIELD(foldkv_eviction, layer_numbers, 248, 8);
FIELD(foldkv_eviction, layer_number_count, 256, 4);
FIELD(foldkv_eviction, layers_per_group, 260, 4);
FIELD(foldkv_eviction, head_ranking, 264, 8);
FIELD(foldkv_eviction, head_ranking_count, 272, 4);
FIELD(foldkv_eviction, exempt_layer_count, 276, 4);
FIELD(foldkv_eviction, exempt_layers, 280, 8);
FIELD(foldkv_eviction, pinned, 288, 8);
FIELD(foldkv_eviction, pinned_count, 296, 8);

STRUCT(foldkv_policy_info, 136);
FIELD(foldkv_policy_info, struct_size, 0, 4);
FIELD(foldkv_policy_info, reserved, 4, 4);
FIELD(foldkv_policy_info, name, 8, 32);
FIELD(foldkv_policy_info, description, 40, 96);

STRUCT(foldkv_sequence_options, 48);
FIELD(foldkv_sequence_options, struct_size, 0, 4);
FIELD(foldkv_sequence_options, dtype, 4, 4);
FIELD(foldkv_sequence_options, sink_tokens, 8, 4);
FIELD(foldkv_sequence_options, recent_tokens, 12, 4);
FIELD(foldkv_sequence_options, fold_tokens, 16, 4);
FIELD(foldkv_sequence_options, mean, 20, 4);
FIELD(foldkv_sequence_options, plan, 24, 8);
FIELD(foldkv_sequence_options, eviction, 32, 8);
FIELD(foldkv_sequence_options, arithmetic, 40, 4);
FIELD(foldkv_sequence_options, reserved, 44, 4);

STRUCT(foldkv_estimate, 32);
FIELD(foldkv_estimate, struct_size, 0, 4);
FIELD(foldkv_estimate, reserved, 4, 4);
FIELD(foldkv_estimate, sequence_bytes, 8, 8);
FIELD(foldkv_estimate, shared_bytes, 16, 8);
FIELD(foldkv_estimate, peak_bytes, 24, 8);

STRUCT(foldkv_sequence_stats, 232);
FIELD(foldkv_sequence_stats, struct_size, 0, 4);
FIELD(foldkv_sequence_stats, exact_layers, 4, 4);
FIELD(foldkv_sequence_stats, tokens, 8, 8);
FIELD(foldkv_sequence_stats, exact_tokens, 16, 8);
FIELD(foldkv_sequence_stats, latent_tokens, 24, 8);
FIELD(foldkv_sequence_stats, next_position, 32, 8);
FIELD(foldkv_sequence_stats, bytes, 40, 8);
FIELD(foldkv_sequence_stats, full_cache_bytes, 48, 8);
FIELD(foldkv_sequence_stats, latent_token_bytes, 56, 8);
FIELD(foldkv_sequence_stats, full_token_bytes, 64, 8);
FIELD(foldkv_sequence_stats, grouped_token_bytes, 72, 8);
FIELD(foldkv_sequence_stats, ledger, 80, 72);
FIELD(foldkv_sequence_stats, token_bytes, 152, 8);
FIELD(foldkv_sequence_stats, energy_out_of_basis, 160, 16);
FIELD(foldkv_sequence_stats, expected_energy_out_of_basis, 176, 16);
FIELD(foldkv_sequence_stats, held_head_tokens, 192, 8);
FIELD(foldkv_sequence_stats, fed_head_tokens, 200, 8);
FIELD(foldkv_sequence_stats, shared_bytes, 208, 8);
FIELD(foldkv_sequence_stats, lowest_truncation, 216, 8);
FIELD(foldkv_sequence_stats, plan, 224, 4);
FIELD(foldkv_sequence_stats, spilled, 228, 4);

STRUCT(foldkv_rebuild_options, 40);
FIELD(foldkv_rebuild_options, struct_size, 0, 4);
FIELD(foldkv_rebuild_options, layer, 4, 4);
FIELD(foldkv_rebuild_options, side, 8, 4);
FIELD(foldkv_rebuild_options, rotated, 12, 4);
FIELD(foldkv_rebuild_options, first_token, 16, 8);
FIELD(foldkv_rebuild_options, token_count, 24, 8);
FIELD(foldkv_rebuild_options, one_head, 32, 4);
FIELD(foldkv_rebuild_options, kv_head, 36, 4);

STRUCT(foldkv_replace_options, 24);
FIELD(foldkv_replace_options, struct_size, 0, 4);
FIELD(foldkv_replace_options, layer, 4, 4);
FIELD(foldkv_replace_options, side, 8, 4);
FIELD(foldkv_replace_options, reserved, 12, 4);
FIELD(foldkv_replace_options, first_token, 16, 8);

STRUCT(foldkv_perturb_options, 56);
FIELD(foldkv_perturb_options, struct_size, 0, 4);
FIELD(foldkv_perturb_options, layer, 4, 4);
FIELD(foldkv_perturb_options, keys, 8, 4);
FIELD(foldkv_perturb_options, reserved, 12, 4);
FIELD(foldkv_perturb_options, scale, 16, 8);
FIELD(foldkv_perturb_options, seed, 24, 8);
FIELD(foldkv_perturb_options, example, 32, 8);
FIELD(foldkv_perturb_options, first_token, 40, 8);
FIELD(foldkv_perturb_options, token_count, 48, 8);

STRUCT(foldkv_layer_sensitivity, 32);
FIELD(foldkv_layer_sensitivity, struct_size, 0, 4);
FIELD(foldkv_layer_sensitivity, reserved, 4, 4);
FIELD(foldkv_layer_sensitivity, divergence, 8, 8);
FIELD(foldkv_layer_sensitivity, rows, 16, 8);
FIELD(foldkv_layer_sensitivity, examples, 24, 8);

STRUCT(foldkv_sensitivity_source, 88);
FIELD(foldkv_sensitivity_source, struct_size, 0, 4);
FIELD(foldkv_sensitivity_source, reserved, 4, 4);
FIELD(foldkv_sensitivity_source, scale, 8, 8);
FIELD(foldkv_sensitivity_source, seed, 16, 8);
FIELD(foldkv_sensitivity_source, text, 24, 64);

STRUCT(foldkv_plan_wish, 96);
FIELD(foldkv_plan_wish, struct_size, 0, 4);
FIELD(foldkv_plan_wish, reserved, 4, 4);
FIELD(foldkv_plan_wish, budget_bytes, 8, 8);
FIELD(foldkv_plan_wish, tokens, 16, 8);
FIELD(foldkv_plan_wish, sequences, 24, 8);
FIELD(foldkv_plan_wish, generated_tokens, 32, 8);
FIELD(foldkv_plan_wish, bytes_per_token, 40, 8);
FIELD(foldkv_plan_wish, ratio, 48, 8);
FIELD(foldkv_plan_wish, highest_cost, 56, 8);
FIELD(foldkv_plan_wish, sequence_options, 64, 8);
FIELD(foldkv_plan_wish, step_options, 72, 8);
FIELD(foldkv_plan_wish, highest_divergence, 80, 8);
FIELD(foldkv_plan_wish, lowest_keep_ratio, 88, 8);

STRUCT(foldkv_plan_choice, 616);
FIELD(foldkv_plan_choice, struct_size, 0, 4);
FIELD(foldkv_plan_choice, plan, 4, 4);
FIELD(foldkv_plan_choice, name, 8, 32);
FIELD(foldkv_plan_choice, bytes_per_token, 40, 8);
FIELD(foldkv_plan_choice, expected_cost, 48, 8);
FIELD(foldkv_plan_choice, tokens_kept, 56, 8);
FIELD(foldkv_plan_choice, keep_ratio, 64, 8);
FIELD(foldkv_plan_choice, sequence_bytes, 72, 8);
FIELD(foldkv_plan_choice, shared_bytes, 80, 8);
FIELD(foldkv_plan_choice, total_bytes, 88, 8);
FIELD(foldkv_plan_choice, budget_bytes, 96, 8);
FIELD(foldkv_plan_choice, explanation, 104, 512);

STRUCT(foldkv_feed, 32);
FIELD(foldkv_feed, struct_size, 0, 4);
FIELD(foldkv_feed, flags, 4, 4);
FIELD(foldkv_feed, sequence, 8, 8);
FIELD(foldkv_feed, token_count, 16, 8);
FIELD(foldkv_feed, positions, 24, 8);

STRUCT(foldkv_step_options, 24);
FIELD(foldkv_step_options, struct_size, 0, 4);
FIELD(foldkv_step_options, input, 4, 4);
FIELD(foldkv_step_options, output, 8, 4);
FIELD(foldkv_step_options, reserved, 12, 4);
FIELD(foldkv_step_options, cancel, 16, 8);

STRUCT(foldkv_attend, 544);
FIELD(foldkv_attend, struct_size, 0, 4);
FIELD(foldkv_attend, reserved, 4, 4);
FIELD(foldkv_attend, hidden, 8, 88);
FIELD(foldkv_attend, query, 96, 88);
FIELD(foldkv_attend, key, 184, 88);
FIELD(foldkv_attend, value, 272, 88);
FIELD(foldkv_attend, output, 360, 88);
FIELD(foldkv_attend, log_sum_exp, 448, 88);
FIELD(foldkv_attend, stream, 536, 8);

STRUCT(foldkv_times, 80);
FIELD(foldkv_times, struct_size, 0, 4);
FIELD(foldkv_times, reserved, 4, 4);
FIELD(foldkv_times, project, 8, 8);
FIELD(foldkv_times, append, 16, 8);
FIELD(foldkv_times, attend, 24, 8);
FIELD(foldkv_times, score, 32, 8);
FIELD(foldkv_times, decide, 40, 8);
FIELD(foldkv_times, encode, 48, 8);
FIELD(foldkv_times, save, 56, 8);
FIELD(foldkv_times, restore, 64, 8);
FIELD(foldkv_times, steps, 72, 8);

STRUCT(foldkv_reclaimable, 48);
FIELD(foldkv_reclaimable, struct_size, 0, 4);
FIELD(foldkv_reclaimable, smallest_plan, 4, 4);
FIELD(foldkv_reclaimable, release, 8, 8);
FIELD(foldkv_reclaimable, spill, 16, 8);
FIELD(foldkv_reclaimable, compress, 24, 8);
FIELD(foldkv_reclaimable, plan, 32, 8);
FIELD(foldkv_reclaimable, plan_room, 40, 8);

STRUCT(foldkv_save_options, 32);
FIELD(foldkv_save_options, struct_size, 0, 4);
FIELD(foldkv_save_options, compression, 4, 4);
FIELD(foldkv_save_options, note, 8, 8);
FIELD(foldkv_save_options, note_size, 16, 8);
FIELD(foldkv_save_options, cancel, 24, 8);

STRUCT(foldkv_restore_options, 24);
FIELD(foldkv_restore_options, struct_size, 0, 4);
FIELD(foldkv_restore_options, reserved, 4, 4);
FIELD(foldkv_restore_options, plan, 8, 8);
FIELD(foldkv_restore_options, cancel, 16, 8);

STRUCT(foldkv_snapshot_info, 280);
FIELD(foldkv_snapshot_info, struct_size, 0, 4);
FIELD(foldkv_snapshot_info, sequence_count, 4, 4);
FIELD(foldkv_snapshot_info, model_fingerprint, 8, 8);
FIELD(foldkv_snapshot_info, profile_fingerprint, 16, 8);
FIELD(foldkv_snapshot_info, page_bytes, 24, 8);
FIELD(foldkv_snapshot_info, note_size, 32, 8);
FIELD(foldkv_snapshot_info, tokens, 40, 8);
FIELD(foldkv_snapshot_info, next_position, 48, 8);
FIELD(foldkv_snapshot_info, model_name, 56, 128);
FIELD(foldkv_snapshot_info, plan, 184, 32);
FIELD(foldkv_snapshot_info, made_by, 216, 64);

VALUE(FOLDKV_OK, 0);
VALUE(FOLDKV_E_ARGUMENT, 1);
VALUE(FOLDKV_E_VERSION, 2);
VALUE(FOLDKV_E_BUDGET, 3);
VALUE(FOLDKV_E_MEMORY, 4);
VALUE(FOLDKV_E_UNSUPPORTED, 5);
VALUE(FOLDKV_E_STATE, 6);
VALUE(FOLDKV_E_MISMATCH, 7);
VALUE(FOLDKV_E_CORRUPT, 8);
VALUE(FOLDKV_E_NUMERIC, 9);
VALUE(FOLDKV_E_BACKEND, 10);
VALUE(FOLDKV_E_INTERNAL, 11);
VALUE(FOLDKV_E_FILE, 12);
VALUE(FOLDKV_E_CANCELLED, 13);

VALUE(FOLDKV_F32, 1);
VALUE(FOLDKV_F16, 2);
VALUE(FOLDKV_BF16, 3);

VALUE(FOLDKV_HOST, 0);
VALUE(FOLDKV_DEVICE, 1);
VALUE(FOLDKV_LOG_ERROR, 1);
VALUE(FOLDKV_LOG_WARNING, 2);
VALUE(FOLDKV_LOG_INFO, 3);

VALUE(FOLDKV_PAIRING_HALF_SPLIT, 1);
VALUE(FOLDKV_PAIRING_INTERLEAVED, 2);

VALUE(FOLDKV_KEYS, 0);
VALUE(FOLDKV_VALUES, 1);
VALUE(FOLDKV_GROUP_LEARNED, 0);
VALUE(FOLDKV_GROUP_ROWS, 1);
VALUE(FOLDKV_GROUP_SEQUENCE, 2);
VALUE(FOLDKV_GROUP_MERGED, 3);
VALUE(FOLDKV_CODE_UNIFORM, 0);
VALUE(FOLDKV_CODE_TRELLIS, 1);
VALUE(FOLDKV_CODE_HALF, 2);
VALUE(FOLDKV_CODE_ASYMMETRIC, 3);
VALUE(FOLDKV_CODE_CHANNEL, 4);
VALUE(FOLDKV_CODEC_INTEGER, 1);
VALUE(FOLDKV_CODEC_KIVI, 2);
VALUE(FOLDKV_CODEC_XKV, 3);
VALUE(FOLDKV_CODEC_MINICACHE, 4);
VALUE(FOLDKV_CODEC_KVSHARER, 5);

VALUE(FOLDKV_SCORER_NONE, 1);
VALUE(FOLDKV_SCORER_POSITION, 2);
VALUE(FOLDKV_SCORER_WINDOW, 3);
VALUE(FOLDKV_SCORER_ACCUMULATED, 4);
VALUE(FOLDKV_SCORER_LAST_ROW, 5);
VALUE(FOLDKV_SCORER_EXPECTED_ATTENTION, 6);
VALUE(FOLDKV_ROWS_SUM, 1);
VALUE(FOLDKV_ROWS_MEAN, 2);
VALUE(FOLDKV_ROWS_MAXIMUM, 3);
VALUE(FOLDKV_ROWS_MEAN_PLUS_VARIANCE, 4);
VALUE(FOLDKV_ROWS_NEGATED_BELOW, 5);
VALUE(FOLDKV_POOLING_NONE, 1);
VALUE(FOLDKV_POOLING_AVERAGE, 2);
VALUE(FOLDKV_POOLING_MAXIMUM, 3);
VALUE(FOLDKV_HEADS_MEAN, 1);
VALUE(FOLDKV_HEADS_MAXIMUM, 2);
VALUE(FOLDKV_HEADS_SUM, 3);
VALUE(FOLDKV_WEIGHTING_NONE, 1);
VALUE(FOLDKV_WEIGHTING_VALUE_L1, 2);
VALUE(FOLDKV_WEIGHTING_VALUE_L2, 3);
VALUE(FOLDKV_WEIGHTING_HEAD_MAXIMUM, 4);
VALUE(FOLDKV_WEIGHTING_OUTPUT_L1, 5);
VALUE(FOLDKV_SCOPE_HEAD, 1);
VALUE(FOLDKV_SCOPE_LAYER, 2);
VALUE(FOLDKV_SCOPE_GROUP, 3);
VALUE(FOLDKV_LAYERS_UNIFORM, 1);
VALUE(FOLDKV_LAYERS_PYRAMID, 2);
VALUE(FOLDKV_LAYERS_RIPPLE, 3);
VALUE(FOLDKV_LAYERS_CAKE, 4);
VALUE(FOLDKV_LAYERS_LAVA, 5);
VALUE(FOLDKV_LAYERS_DYNAMIC, 6);
VALUE(FOLDKV_LAYERS_IMPORTANCE, 7);
VALUE(FOLDKV_LAYERS_CUSTOM, 8);
VALUE(FOLDKV_LAYERS_EPISODE, 9);
VALUE(FOLDKV_LAYERS_COSINE, 10);
VALUE(FOLDKV_HEAD_BUDGETS_UNIFORM, 1);
VALUE(FOLDKV_HEAD_BUDGETS_ADA, 2);
VALUE(FOLDKV_HEAD_BUDGETS_LAVA, 3);
VALUE(FOLDKV_MEAN_DEFAULT, 0);
VALUE(FOLDKV_MEAN_SEQUENCE, 1);
VALUE(FOLDKV_MEAN_PROFILE, 2);
VALUE(FOLDKV_ARITHMETIC_EXACT, 1);
VALUE(FOLDKV_ARITHMETIC_FAST, 2);

VALUE(FOLDKV_FEED_CONTINUES, 1);

VALUE(FOLDKV_INPUT_DEFAULT, 0);
VALUE(FOLDKV_INPUT_HIDDEN, 1);
VALUE(FOLDKV_INPUT_QKV, 2);

VALUE(FOLDKV_OUTPUT_DEFAULT, 0);
VALUE(FOLDKV_OUTPUT_CONTEXT, 1);
VALUE(FOLDKV_OUTPUT_PROJECTED, 2);
