#include "tests/backends/conformance/attend_problem.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/backends/conformance/fields.h"
#include "tests/backends/conformance/heads_case.h"
#include "tests/backends/conformance/remembered_normals.h"
#include "tests/support/layer_group.h"
#include "tests/support/prepared_rotation.h"

namespace foldkv::test {
namespace {

using backend::Side;

constexpr int64_t kSinks = 4;
// Of weights, in fast arithmetic, with queries and keys of size 1: rows of a basis are rounded to 127ths of their
// largest number.
constexpr double kFastError = 0.03;

backend::LatentLayout layout_of(const AttendCase& attend_case) {
  const int64_t keys = attend_case.key_latents > 0 ? attend_case.key_latents : attend_case.key_width() + 3;
  const int64_t values = attend_case.value_latents > 0 ? attend_case.value_latents : attend_case.key_width() + 1;
  const auto plane = [&](int64_t width) {
    std::vector<LatentBand> bands = {{width, attend_case.bits, attend_case.step}};
    bands.insert(bands.end(), attend_case.tail.begin(), attend_case.tail.end());
    return make_plane(bands, attend_case.scale_group);
  };
  return make_layout(plane(keys), plane(values), attend_case.correction_rank, attend_case.latent_page_tokens);
}

// Rising positions, one after the other or with holes.
std::vector<int32_t> rising_positions(Random& random, int64_t position, int64_t count, bool jumps) {
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    positions.push_back(static_cast<int32_t>(position));
    position += 1 + (jumps && random.chance(0.2) ? random.between(0, 3000) : 0);
  }
  return positions;
}

}  // namespace

AttendProblem::AttendProblem(const AttendCase& attend_case, std::byte fill)
    : case_(attend_case),
      fill_(fill),
      random_(24),
      layout_(layout_of(attend_case)),
      frequencies_(
          inverse_frequencies(attend_case.frequencies < 0 ? attend_case.head_size / 2 : attend_case.frequencies)) {
  const int64_t stacked = case_.layers * case_.key_width();
  key_basis_ = remembered_normals(random_, stacked * layout_.keys.width,
                                  case_.key_size / std::sqrt(static_cast<double>(layout_.keys.width)));
  value_basis_ = remembered_normals(random_, stacked * layout_.values.width,
                                    1.0 / std::sqrt(static_cast<double>(layout_.values.width)));
  for (const AttendSequenceCase& shape : case_.sequences) {
    sequences_.push_back(make_sequence(shape));
    const size_t view = (sequences_.size() - 1) % static_cast<size_t>(case_.views());
    if (view > 0) sequences_.back().queries = sequences_[sequences_.size() - 1 - view].queries;
  }
}

AttendProblem::Sequence AttendProblem::make_sequence(const AttendSequenceCase& shape) {
  const int64_t width = case_.view_width();
  const int64_t stacked = case_.layers * case_.key_width();
  const auto positions =
      rising_positions(random_, case_.first_position, shape.latents + shape.exact + shape.rows, case_.jumps);
  const int64_t sinks = std::min(kSinks, shape.exact);
  const auto place = positions.begin();
  std::vector<int32_t> exact(place, place + sinks);
  exact.insert(exact.end(), place + sinks + shape.latents, place + shape.latents + shape.exact);
  const std::vector<int32_t> latents(place + sinks, place + sinks + shape.latents);
  // Room for two tokens more than are in use, so that there is unused memory in every page list.
  Sequence sequence{
      shape,
      ExactPages({case_.exact_page_tokens, width, case_.format}, shape.exact + 2, fill_),
      LatentPages(layout_, shape.latents + 2, fill_),
      PositionPages(exact, case_.exact_page_tokens + 1, fill_),
      PositionPages(latents, case_.latent_page_tokens + 3, fill_),
      {},
      remembered_normals(random_, shape.rows * case_.query_heads() * case_.head_size, case_.query_size / shape.size),
      halves(random_.normals<float>(stacked, 0.5 * case_.key_size * shape.size)),
      halves(random_.normals<float>(stacked, 0.5 * shape.size)),
      halves(random_basis(random_, stacked, case_.correction_rank))};
  sequence.exact.put_rows(Side::kKeys, 0,
                          remembered_normals(random_, shape.exact * width, case_.key_size * shape.size));
  sequence.exact.put_rows(Side::kValues, 0, remembered_normals(random_, shape.exact * width, shape.size));
  sequence.latents.randomize(random_, 0, shape.latents, shape.size);
  // Queries of new tokens when there are enough of them.
  const int64_t first_query = shape.latents + (shape.exact >= shape.rows ? shape.exact - shape.rows : shape.exact);
  sequence.query_positions.assign(place + first_query, place + first_query + shape.rows);
  return sequence;
}

std::vector<AttendPart> AttendProblem::whole() const {
  std::vector<AttendPart> parts;
  for (size_t i = 0; i < sequences_.size(); ++i) parts.push_back({i, 0, sequences_[i].shape.rows});
  return parts;
}

backend::AttendSequence AttendProblem::request_of(const AttendPart& part, int64_t first_row) const {
  const Sequence& sequence = sequences_[part.sequence];
  backend::AttendSequence request;
  request.exact = {sequence.exact.region().pages, sequence.shape.exact};
  request.exact_positions = sequence.exact_positions.region();
  if (sequence.shape.latents > 0) {
    request.latent = {sequence.latents.pool().pages(), sequence.shape.latents,
                      case_.means ? sequence.key_mean.data() : nullptr,
                      case_.means ? sequence.value_mean.data() : nullptr,
                      case_.correction_rank > 0 ? sequence.correction.data() : nullptr};
    request.latent_positions = sequence.latent_positions.region();
  }
  request.first_row = first_row;
  request.row_count = part.row_count;
  request.query_positions = sequence.query_positions.data() + part.first_row;
  if (case_.view_heads > 0) {
    request.first_head = static_cast<int64_t>(part.sequence) % case_.views() * case_.view_heads;
    request.head_count = case_.view_heads;
  }
  return request;
}

// Weights are off by what logits are off, and those by f32 steps of |query| * |key|.
Tolerance AttendProblem::tolerance() const {
  const double logits = std::sqrt(static_cast<double>(case_.head_size)) * case_.query_size * case_.key_size *
                        case_.rotation_scale * case_.rotation_scale;
  return {0.0, 4e-6 + 4e-7 * logits + (fast() ? kFastError * case_.query_size * case_.key_size : 0.0), 0.0};
}

Tolerance AttendProblem::log_sum_exp_tolerance() const { return {1e-6, 0.0, tolerance().of_row}; }

MemoryBlock AttendProblem::fast_key_basis(backend::Backend& backend) const {
  const int64_t rows = case_.layers * case_.key_width();
  const int64_t bytes = fast() && case_.grouped ? backend.fast_basis_bytes(rows, layout_.keys.width) : 0;
  MemoryBlock memory(bytes, fill_);
  if (bytes > 0 && !backend.prepare_fast_basis(key_basis_.data(), rows, layout_.keys.width, memory.data()).ok()) {
    throw std::runtime_error("no fast basis");
  }
  return memory;
}

AttendProblem::Call AttendProblem::make_call(std::span<const AttendPart> parts) const {
  const int64_t row_width = case_.query_heads() * case_.head_size;
  Call call;
  call.shape.query_heads = case_.query_heads();
  call.shape.kv_heads = case_.kv_heads;
  call.shape.head_size = case_.head_size;
  call.shape.sequences = static_cast<int64_t>(parts.size());
  if (case_.grouped) {
    call.shape.key_latent_width = layout_.keys.width;
    call.shape.value_latent_width = layout_.values.width;
    call.shape.correction_rank = case_.correction_rank;
  }
  for (const AttendPart& part : parts) {
    const Sequence& sequence = sequences_[part.sequence];
    call.shape.total_tokens += sequence.shape.latents + sequence.shape.exact;
    const bool same_rows = static_cast<int64_t>(part.sequence) % case_.views() > 0 && !call.sequences.empty();
    call.sequences.push_back(request_of(part, same_rows ? call.sequences.back().first_row : call.shape.rows));
    if (same_rows) continue;
    call.shape.rows += part.row_count;
    const auto first = sequence.queries.begin() + part.first_row * row_width;
    call.queries.insert(call.queries.end(), first, first + part.row_count * row_width);
  }
  return call;
}

backend::AttentionRules AttendProblem::rules(const backend::Rotation& rotation) const {
  return {case_.query_heads(), case_.kv_heads, case_.head_size, 1.0 / std::sqrt(static_cast<double>(case_.head_size)),
          case_.soft_cap,      case_.window,   rotation};
}

backend::LatentLayer AttendProblem::latent_layer() const {
  if (!case_.grouped) return {};
  const int64_t first_row = (case_.layers - 1) * case_.key_width();
  return {&layout_, key_basis_.data() + first_row * layout_.keys.width,
          value_basis_.data() + first_row * layout_.values.width, first_row};
}

backend::Rotation AttendProblem::rotation() const {
  return {case_.pairing, static_cast<int64_t>(frequencies_.size()), case_.rotation_scale, frequencies_.data(), nullptr};
}

backend::ExactLayout AttendProblem::exact_layout() const {
  return {case_.exact_page_tokens, case_.view_width(), case_.format};
}

Outcome AttendProblem::run(backend::Backend& backend, std::span<const AttendPart> parts) const {
  const int64_t heads = case_.query_heads();
  const int64_t row_width = heads * case_.head_size;
  const PreparedRotation prepared(backend, rotation());
  const Call call = make_call(parts);
  const TensorMemory context(NumberFormat::kF32, call.shape.rows, row_width, row_width, fill_);
  const TensorMemory log_sum_exp(NumberFormat::kF32, call.shape.rows, heads, heads, fill_);
  const MemoryBlock workspace(backend.attend_workspace(call.shape), fill_);
  Outcome outcome;
  const MemoryBlock fast_basis = fast_key_basis(backend);
  backend::LatentLayer latent = latent_layer();
  if (fast_basis.bytes() > 0) latent.fast_key_basis = fast_basis.data();
  outcome.set_status(
      backend.attend({.rules = rules(prepared.get()),
                      .exact_layout = exact_layout(),
                      .latent = latent,
                      .arithmetic = case_.arithmetic,
                      .sequences = call.sequences,
                      .queries = call.queries.data(),
                      .context = reinterpret_cast<float*>(context.view().data),
                      .log_sum_exp = case_.log_sum_exp ? reinterpret_cast<float*>(log_sum_exp.view().data) : nullptr,
                      .workspace = workspace.data()}));
  outcome.expect(context.canary_alive() && log_sum_exp.canary_alive() && workspace.canary_alive(),
                 "written beyond the results or the workspace");
  const auto add_field = [&](const char* name, size_t i, const TensorMemory& memory, const Tolerance& allowed) {
    const int64_t width = memory.view().column_count;
    const std::vector<double> all = memory.numbers();
    const auto first = all.begin() + call.sequences[i].first_row * width;
    const std::vector<double> numbers(first, first + parts[i].row_count * width);
    outcome.fields.push_back(numbers_field(absl::StrCat(name, " ", i), numbers, width, allowed));
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    add_field("context", i, context, tolerance());
    if (case_.log_sum_exp) add_field("log_sum_exp", i, log_sum_exp, log_sum_exp_tolerance());
  }
  return outcome;
}

Outcome run_attend(const AttendCase& attend_case, backend::Backend& backend, std::byte fill) {
  const AttendProblem problem(attend_case, fill);
  const std::vector<AttendPart> parts = problem.whole();
  return problem.run(backend, parts);
}

}  // namespace foldkv::test
