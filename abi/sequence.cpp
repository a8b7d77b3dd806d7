#include <limits>
#include <string>

#include "abi/check_place.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_eviction.h"
#include "abi/read_options.h"
#include "abi/read_struct.h"
#include "abi/read_tensor.h"
#include "abi/write_ledger.h"
#include "runtime/cache/estimate.h"
#include "runtime/codec/latent_layout.h"

namespace foldkv::abi {
namespace {

constexpr int64_t kBytesOfHalf = 2;

StatusOr<std::shared_ptr<Sequence>> create_sequence(const foldkv_runtime* runtime, const foldkv_model* model,
                                                    const foldkv_profile* profile,
                                                    const foldkv_sequence_options* options) {
  FOLDKV_RETURN_IF_ERROR(require(runtime, "runtime"));
  FOLDKV_RETURN_IF_ERROR(require(model, "model"));
  FOLDKV_ASSIGN_OR_RETURN(const SequencePolicy policy, read_sequence_options(options, *model->object, profile));
  auto created =
      Sequence::create(runtime->object, model->object, profile == nullptr ? nullptr : profile->object, policy);
  return created.ok() ? std::move(created) : with_public_field(created.status());
}

StatusOr<Estimate> estimate(const foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile,
                            const foldkv_sequence_options* options, const foldkv_step_options* step_options,
                            EstimateQuestion question) {
  FOLDKV_RETURN_IF_ERROR(require(runtime, "runtime"));
  FOLDKV_RETURN_IF_ERROR(require(model, "model"));
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (const auto& [name, count] :
       {std::pair{"prompt_tokens", question.prompt_tokens}, std::pair{"generated_tokens", question.generated_tokens}}) {
    if (count < 0 || count > kLargest) {
      return argument_error(name, absl::StrCat("is ", count, ", expected 0 to ", kLargest));
    }
  }
  FOLDKV_ASSIGN_OR_RETURN(question.policy, read_sequence_options(options, *model->object, profile));
  FOLDKV_ASSIGN_OR_RETURN(question.rules, read_step_options(step_options, "step_options", *model->object));
  return estimate_sequence(*runtime->object, model->object, profile == nullptr ? nullptr : profile->object, question);
}

foldkv_sequence_stats sequence_stats(const Sequence& sequence) {
  const SequenceStorage& storage = sequence.storage();
  const PreparedProfile& profile = sequence.shared_profile()->data;
  int64_t latent_bytes = 0;
  for (const PreparedGroup& group : profile.groups) {
    latent_bytes += latent_token_bytes(group.layouts[sequence.policy().plan]);
  }
  int64_t grouped = 0;
  int64_t exact = 0;
  foldkv_sequence_stats stats{};
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) {
    const bool in_group = profile.place_of_layer[static_cast<size_t>(layer)].group >= 0;
    if (in_group) grouped += 2 * kBytesOfHalf * sequence.model().layer(layer).key_width();
    stats.exact_layers += in_group ? 0 : 1;
    if (in_group || !storage.stores(layer)) continue;
    for (const ExactPlane& plane : storage.planes_of(layer)) exact += 2 * plane.layout.row_bytes();
  }
  const Ledger ledger = sequence.ledger();
  const int64_t full_token = sequence.model().full_token_bytes();
  stats.tokens = storage.token_count();
  stats.exact_tokens = storage.has_groups() ? storage.grouped_exact_tokens() : storage.token_count();
  stats.latent_tokens = storage.latent_tokens();
  stats.next_position = sequence.next_position();
  stats.bytes = static_cast<uint64_t>(ledger.total());
  for (int64_t layer = 0; layer < sequence.model().layer_count(); ++layer) {
    const int64_t heads = sequence.model().layer(layer).kv_heads;
    stats.fed_head_tokens += heads * storage.token_count();
    for (int64_t head = 0; head < heads; ++head) stats.held_head_tokens += sequence.held_tokens(layer, head);
  }
  stats.full_cache_bytes = static_cast<uint64_t>(full_token * storage.token_count());
  stats.latent_token_bytes = static_cast<uint64_t>(latent_bytes);
  stats.full_token_bytes = static_cast<uint64_t>(full_token);
  stats.grouped_token_bytes = static_cast<uint64_t>(grouped);
  stats.ledger = public_ledger(ledger);
  stats.shared_bytes = static_cast<uint64_t>(sequence.shared_bytes());
  stats.plan = static_cast<int32_t>(sequence.policy().plan);
  stats.spilled = sequence.spilled() ? 1 : 0;
  stats.lowest_truncation = sequence.lowest_truncation();
  stats.token_bytes = static_cast<uint64_t>(latent_bytes + exact);
  const Energies expected = sequence.expected_energies();
  for (size_t side = 0; side < expected.size(); ++side) {
    stats.energy_out_of_basis[side] = sequence.energies()[side].share_lost();
    stats.expected_energy_out_of_basis[side] = expected[side].share_lost();
  }
  return stats;
}

StatusOr<std::optional<int64_t>> read_head(const Sequence& sequence, const foldkv_rebuild_options& options) {
  if (options.one_head != 0 && options.one_head != 1) {
    return argument_error("options.one_head", absl::StrCat("is ", options.one_head, ", expected 0 or 1"));
  }
  if (options.one_head == 0) return std::nullopt;
  FOLDKV_RETURN_IF_ERROR(
      check_head(options.kv_head, "options.kv_head", sequence.model().layer(options.layer).kv_heads));
  return options.kv_head;
}

// Writes positions where there is room, their number in any case.
Status write_positions(const std::vector<int32_t>& all, int64_t* positions, int64_t capacity, int64_t* count) {
  const auto tokens = std::ssize(all);
  if (positions != nullptr) {
    if (capacity < tokens) {
      return argument_error("capacity", absl::StrCat("is ", capacity, ", expected ", tokens, " or more"));
    }
    std::copy(all.begin(), all.end(), positions);
  }
  *count = tokens;
  return absl::OkStatus();
}

Status kept_positions(const Sequence& sequence, int32_t layer, int32_t head, int64_t* positions, int64_t capacity,
                      int64_t* count) {
  FOLDKV_RETURN_IF_ERROR(check_layer(layer, "layer", sequence.model().layer_count()));
  FOLDKV_RETURN_IF_ERROR(check_head(head, "kv_head", sequence.model().layer(layer).kv_heads));
  FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> held, sequence.positions(layer, head));
  return write_positions(held, positions, capacity, count);
}

Status rebuild(const Sequence& sequence, const foldkv_rebuild_options* source, const foldkv_tensor* output) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_rebuild_options options, read_struct(source, "options"));
  FOLDKV_RETURN_IF_ERROR(require(output, "output"));
  FOLDKV_RETURN_IF_ERROR(check_layer(options.layer, "options.layer", sequence.model().layer_count()));
  FOLDKV_RETURN_IF_ERROR(check_side(options.side, "options.side"));
  if (options.rotated != 0 && options.rotated != 1) {
    return argument_error("options.rotated", absl::StrCat("is ", options.rotated, ", expected 0 or 1"));
  }
  FOLDKV_ASSIGN_OR_RETURN(const std::optional<int64_t> head, read_head(sequence, options));
  const int64_t tokens = sequence.held_tokens(options.layer, head.value_or(0));
  if (options.first_token < 0 || options.first_token >= tokens) {
    return argument_error("options.first_token",
                          absl::StrCat("is ", options.first_token, ", ", tokens, " tokens are held"));
  }
  const int64_t left = tokens - options.first_token;
  if (options.token_count < 0 || options.token_count > left) {
    return argument_error("options.token_count", absl::StrCat("is ", options.token_count, ", expected 0 to ", left));
  }
  RebuildQuestion question;
  question.layer = options.layer;
  question.side = static_cast<backend::Side>(options.side);
  question.rotated = options.rotated == 1;
  question.first_token = options.first_token;
  question.token_count = options.token_count == 0 ? left : options.token_count;
  question.head = head;
  const LayerRules& rules = sequence.model().layer(options.layer);
  const int64_t heads = head.has_value() ? 1 : rules.kv_heads;
  FOLDKV_ASSIGN_OR_RETURN(const MutableTensorView view,
                          read_output_tensor(*output, {"output", {question.token_count, heads, rules.head_size}}));
  return sequence.rebuild(question, view);
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_sequence_create(foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile,
                                     const foldkv_sequence_options* options, foldkv_sequence** sequence,
                                     foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_ASSIGN_OR_RETURN(std::shared_ptr<foldkv::Sequence> created,
                            foldkv::abi::create_sequence(runtime, model, profile, options));
    *sequence = new foldkv_sequence{std::move(created)};
    return absl::OkStatus();
  });
}

void foldkv_sequence_release(foldkv_sequence* sequence) { delete sequence; }

foldkv_status foldkv_sequence_estimate(const foldkv_runtime* runtime, const foldkv_model* model,
                                       const foldkv_profile* profile, const foldkv_sequence_options* options,
                                       const foldkv_step_options* step_options, int64_t prompt_tokens,
                                       int64_t generated_tokens, foldkv_estimate* estimate, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(estimate, "estimate"));
    foldkv::EstimateQuestion question;
    question.prompt_tokens = prompt_tokens;
    question.generated_tokens = generated_tokens;
    FOLDKV_ASSIGN_OR_RETURN(const foldkv::Estimate result,
                            foldkv::abi::estimate(runtime, model, profile, options, step_options, question));
    foldkv_estimate written{};
    written.sequence_bytes = static_cast<uint64_t>(result.sequence_bytes);
    written.shared_bytes = static_cast<uint64_t>(result.shared_bytes);
    written.peak_bytes = static_cast<uint64_t>(result.peak_bytes);
    foldkv::abi::write_struct(written, estimate);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_sequence_compress(foldkv_sequence* sequence, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return sequence->object->compress();
  });
}

foldkv_status foldkv_sequence_get_stats(const foldkv_sequence* sequence, foldkv_sequence_stats* stats,
                                        foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::check_output_struct(stats, "stats"));
    foldkv::abi::write_struct(foldkv::abi::sequence_stats(*sequence->object), stats);
    return absl::OkStatus();
  });
}

foldkv_status foldkv_sequence_get_positions(const foldkv_sequence* sequence, int64_t* positions, int64_t capacity,
                                            int64_t* count, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(count, "count"));
    FOLDKV_ASSIGN_OR_RETURN(const std::vector<int32_t> all, sequence->object->positions());
    return foldkv::abi::write_positions(all, positions, capacity, count);
  });
}

foldkv_status foldkv_sequence_get_kept_positions(const foldkv_sequence* sequence, int32_t layer, int32_t kv_head,
                                                 int64_t* positions, int64_t capacity, int64_t* count,
                                                 foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(count, "count"));
    return foldkv::abi::kept_positions(*sequence->object, layer, kv_head, positions, capacity, count);
  });
}

foldkv_status foldkv_sequence_rebuild(const foldkv_sequence* sequence, const foldkv_rebuild_options* options,
                                      const foldkv_tensor* output, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return foldkv::abi::rebuild(*sequence->object, options, output);
  });
}

}  // extern "C"
