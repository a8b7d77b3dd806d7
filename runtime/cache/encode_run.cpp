#include "runtime/cache/encode_run.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/base/checked.h"
#include "runtime/cache/measure_energy.h"
#include "runtime/cache/sequence_basis.h"
#include "runtime/cache/token_pages.h"
#include "runtime/codec/correction.h"

namespace foldkv {
namespace {

using backend::Side;

uint16_t* halves(const Block& block) { return reinterpret_cast<uint16_t*>(block.data()); }

// One group of one sequence while its run is encoded.
struct GroupRun {
  Sequence& sequence;
  const PreparedGroup& prepared;
  const backend::LatentLayout& layout;
  const GroupStorage& storage;
  std::vector<backend::ExactRegion> layers;
  backend::LatentRegion region;
  int64_t first_slot = 0;
  int64_t first_latent_slot = 0;
  int64_t count = 0;
  const int32_t* slots = nullptr;  // null: those from first_slot on
  int64_t run_tokens = 0;          // all that leave the exact region, encoded or not
  std::byte* workspace = nullptr;
  int64_t group = 0;

  [[nodiscard]] const BasisPair& bases(Side side) const { return sequence.bases(group, side); }
  [[nodiscard]] backend::Backend& backend() const { return sequence.runtime().backend(); }
  [[nodiscard]] bool first_run() const { return first_latent_slot == 0; }
  [[nodiscard]] backend::StackedRows rows(Side side) const {
    return {layers, sequence.storage().plane_of(prepared.layers.front()).layout, side, first_slot, count, slots};
  }
  // Few survivors have no useful mean: then that of the whole run.
  [[nodiscard]] backend::StackedRows mean_rows(Side side) const {
    backend::StackedRows all = rows(side);
    if (count >= kShortestFirstRun) return all;
    all.count = run_tokens;
    all.slots = nullptr;
    return all;
  }
};

GroupRun group_run(Sequence& sequence, int64_t group, const StorageChange& change, const KeptTokens& kept,
                   std::byte* workspace) {
  const SequenceStorage& storage = sequence.storage();
  const auto index = static_cast<size_t>(group);
  const PreparedGroup& prepared = sequence.shared_profile()->data.groups[index];
  GroupRun run{sequence, prepared, prepared.layouts[sequence.policy().plan], storage.groups()[index], {}, {}};
  const std::vector<int32_t>& slots = kept.encoded[static_cast<size_t>(storage.latent_index_of(group))];
  run.first_slot = storage.sink_slots();
  run.first_latent_slot = storage.latent_tokens(group);
  run.count = std::ssize(slots);
  run.slots = run.count == change.encoded_tokens ? nullptr : slots.data();
  run.run_tokens = change.encoded_tokens;
  run.region = sequence.latent_region(group, run.first_latent_slot + run.count);
  run.workspace = workspace;
  run.group = group;
  for (int32_t layer : run.prepared.layers) {
    run.layers.push_back({storage.plane_of(layer).pages.pages(), run.first_slot + run.run_tokens});
  }
  return run;
}

Status compute_means(const GroupRun& run) {
  if (!run.first_run() || !run.storage.key_mean) return absl::OkStatus();
  FOLDKV_RETURN_IF_ERROR(run.backend().mean({run.mean_rows(Side::kKeys), halves(run.storage.key_mean), run.workspace}));
  return run.backend().mean({run.mean_rows(Side::kValues), halves(run.storage.value_mean), run.workspace});
}

Status copy_basis(const GroupRun& run, const Block& block, const std::vector<float>& basis) {
  return run.backend().copy_to_device(block.data(), reinterpret_cast<const std::byte*>(basis.data()),
                                      static_cast<int64_t>(basis.size() * sizeof(float)));
}

// Of the first run, for a group whose bases are the sequence's own.
Status compute_bases(const GroupRun& run) {
  if (run.prepared.kind != GroupKind::kSequence || !run.first_run()) return absl::OkStatus();
  for (const Side side : {Side::kKeys, Side::kValues}) {
    const BasisPair& target = run.storage.bases(side);
    FOLDKV_ASSIGN_OR_RETURN(const SequenceBasis found,
                            find_sequence_basis(run.backend(), run.rows(side), run.layout.plane(side).width,
                                                static_cast<bool>(target.projection)));
    FOLDKV_RETURN_IF_ERROR(copy_basis(run, target.basis, found.basis));
    if (target.projection) FOLDKV_RETURN_IF_ERROR(copy_basis(run, target.projection, found.projection));
  }
  return absl::OkStatus();
}

Status encode_side(const GroupRun& run, Side side) {
  backend::EncodeRequest request;
  request.rows = run.rows(side);
  request.mean = side == Side::kKeys ? run.region.key_mean : run.region.value_mean;
  request.basis = run.bases(side).projecting();
  request.layout = &run.layout;
  request.pages = run.region.pages;
  request.first_latent_slot = run.first_latent_slot;
  request.workspace = run.workspace;
  return run.backend().encode(request);
}

Status store_correction_basis(const GroupRun& run, const std::vector<double>& basis) {
  std::vector<uint16_t> rounded(basis.size());
  std::transform(basis.begin(), basis.end(), rounded.begin(),
                 [](double number) { return f16_from_f32(static_cast<float>(number)); });
  return run.backend().copy_to_device(run.storage.correction_basis.data(),
                                      reinterpret_cast<const std::byte*>(rounded.data()),
                                      static_cast<int64_t>(rounded.size() * sizeof(uint16_t)));
}

Status fit_correction(const GroupRun& run) {
  const auto residual_sketch = [&](const std::vector<double>& test, int64_t columns, std::vector<double>& sketch) {
    backend::SketchRequest request;
    request.rows = run.rows(Side::kKeys);
    request.layout = &run.layout;
    request.region = run.region;
    request.region.correction_basis = nullptr;
    request.first_latent_slot = run.first_latent_slot;
    request.basis = run.bases(Side::kKeys).rebuilding();
    request.test = test.data();
    request.columns = columns;
    request.sketch = sketch.data();
    request.workspace = run.workspace;
    return run.backend().sketch(request);
  };
  FOLDKV_ASSIGN_OR_RETURN(
      const std::vector<double> basis,
      find_correction_basis(run.prepared.correction, run.prepared.stacked_width(), residual_sketch));
  return store_correction_basis(run, basis);
}

Status correct(const GroupRun& run) {
  if (run.prepared.correction.rank == 0) return absl::OkStatus();
  if (run.first_run()) FOLDKV_RETURN_IF_ERROR(fit_correction(run));
  backend::CoefficientsRequest request;
  request.rows = run.rows(Side::kKeys);
  request.layout = &run.layout;
  request.region = run.region;
  request.first_latent_slot = run.first_latent_slot;
  request.basis = run.bases(Side::kKeys).rebuilding();
  request.workspace = run.workspace;
  return run.backend().coefficients(request);
}

Status copy_positions(Sequence& sequence, const LatentSet& set, const std::vector<int32_t>& slots) {
  if (slots.empty()) return absl::OkStatus();
  backend::Backend& backend = sequence.runtime().backend();
  const ExactSet& exact = sequence.storage().exact_sets()[static_cast<size_t>(set.exact_set)];
  std::vector<int32_t> positions(static_cast<size_t>(slots.back()) + 1);
  FOLDKV_RETURN_IF_ERROR(read_positions(backend, exact.tokens, 0, std::ssize(positions), positions.data()));
  std::vector<int32_t> encoded;
  encoded.reserve(slots.size());
  for (int32_t slot : slots) encoded.push_back(positions[static_cast<size_t>(slot)]);
  return write_positions(backend, set.tokens, set.token_count, std::ssize(encoded), encoded.data());
}

StatusOr<SideEnergy> energy(const GroupRun& run, Side side, std::byte* scratch) {
  EncodedRows encoded;
  encoded.rows = run.rows(side);
  encoded.layout = &run.layout;
  encoded.region = run.region;
  encoded.first_latent_slot = run.first_latent_slot;
  encoded.basis = run.bases(side).rebuilding();
  encoded.workspace = run.workspace;
  encoded.scratch = scratch;
  return measure_energy(run.backend(), encoded);
}

// Enough for the latent operations of every group.
int64_t latent_workspace(const backend::Backend& backend, const PreparedProfile& profile, size_t plan,
                         int64_t encoded_tokens) {
  int64_t bytes = 0;
  for (const PreparedGroup& group : profile.groups) {
    bytes = std::max(bytes, backend.latent_workspace(latent_shape(group, plan, encoded_tokens)));
  }
  return round_up(bytes, kBlockAlignment);
}

}  // namespace

backend::LatentShape latent_shape(const PreparedGroup& group, size_t plan, int64_t tokens) {
  const backend::LatentLayout& layout = group.layouts[plan];
  return {group.stacked_width(),
          layout.keys.stored_width,
          layout.values.stored_width,
          correction_columns(group.correction, group.stacked_width()),
          tokens,
          std::max(layout.keys.trellis_width(), layout.values.trellis_width()),
          layout.run_tokens()};
}

int64_t encode_workspace(const backend::Backend& backend, const PreparedProfile& profile, size_t plan,
                         int64_t encoded_tokens) {
  int64_t widest = 0;
  for (const PreparedGroup& group : profile.groups) widest = std::max(widest, group.stacked_width());
  return latent_workspace(backend, profile, plan, encoded_tokens) + energy_scratch_bytes(widest);
}

StatusOr<Energies> encode_run(Sequence& sequence, const StorageChange& change, const KeptTokens& kept,
                              std::byte* workspace, Cancellation cancellation) {
  const PhaseTimer timer(sequence.runtime().times(), Phase::kEncode);
  const int64_t scratch = latent_workspace(sequence.runtime().backend(), sequence.shared_profile()->data,
                                           sequence.policy().plan, change.encoded_tokens);
  Energies energies;
  for (int64_t group = 0; group < std::ssize(sequence.storage().groups()); ++group) {
    const GroupRun run = group_run(sequence, group, change, kept, workspace);
    if (run.count == 0) continue;
    FOLDKV_RETURN_IF_ERROR(cancellation.check());
    FOLDKV_RETURN_IF_ERROR(compute_means(run));
    FOLDKV_RETURN_IF_ERROR(compute_bases(run));
    FOLDKV_RETURN_IF_ERROR(encode_side(run, Side::kKeys));
    FOLDKV_RETURN_IF_ERROR(encode_side(run, Side::kValues));
    FOLDKV_RETURN_IF_ERROR(correct(run));
    for (const Side side : {Side::kKeys, Side::kValues}) {
      FOLDKV_ASSIGN_OR_RETURN(const SideEnergy measured, energy(run, side, workspace + scratch));
      energies[static_cast<size_t>(side)] += measured;
    }
  }
  for (size_t index = 0; index < kept.encoded.size(); ++index) {
    FOLDKV_RETURN_IF_ERROR(copy_positions(sequence, sequence.storage().latent_sets()[index], kept.encoded[index]));
  }
  return energies;
}

}  // namespace foldkv
