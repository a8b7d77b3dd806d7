#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/backends/conformance/attend_case.h"
#include "tests/backends/conformance/table.h"
#include "tests/support/exact_pages.h"

namespace foldkv::test {

// Rows of one sequence.
struct AttendPart {
  size_t sequence = 0;
  int64_t first_row = 0;
  int64_t row_count = 0;
};

// Everything that an attend case works on, and calls of attend on parts of it.
class AttendProblem {
 public:
  AttendProblem(const AttendCase& attend_case, std::byte fill);

  // All sequences in one call.
  [[nodiscard]] std::vector<AttendPart> whole() const;
  // Fields "context i" and "log_sum_exp i" for each part i.
  [[nodiscard]] Outcome run(backend::Backend& backend, std::span<const AttendPart> parts) const;

  // What the parts of one call have in common.
  struct Call {
    std::vector<backend::AttendSequence> sequences;
    std::vector<float> queries;  // [rows][query_heads][head_size]
    backend::AttendShape shape;
  };
  [[nodiscard]] Call make_call(std::span<const AttendPart> parts) const;
  [[nodiscard]] backend::Rotation rotation() const;
  [[nodiscard]] backend::AttentionRules rules(const backend::Rotation& rotation) const;
  [[nodiscard]] backend::ExactLayout exact_layout() const;
  [[nodiscard]] backend::LatentLayer latent_layer() const;
  [[nodiscard]] Tolerance tolerance() const;
  [[nodiscard]] Tolerance log_sum_exp_tolerance() const;

 private:
  struct Sequence {
    AttendSequenceCase shape;
    ExactPages exact;
    LatentPages latents;
    PositionPages exact_positions;
    PositionPages latent_positions;
    std::vector<int32_t> query_positions;
    std::vector<float> queries;  // [rows][query_heads][head_size]
    std::vector<uint16_t> key_mean, value_mean, correction;
  };

  [[nodiscard]] Sequence make_sequence(const AttendSequenceCase& shape);
  [[nodiscard]] bool fast() const { return case_.arithmetic == backend::Arithmetic::kFast; }
  [[nodiscard]] MemoryBlock fast_key_basis(backend::Backend& backend) const;
  [[nodiscard]] backend::AttendSequence request_of(const AttendPart& part, int64_t first_row) const;

  AttendCase case_;
  std::byte fill_;
  Random random_;
  backend::LatentLayout layout_;
  std::vector<double> frequencies_;
  std::vector<float> key_basis_, value_basis_;  // [layers * key width][latent width]
  std::vector<Sequence> sequences_;
};

[[nodiscard]] Outcome run_attend(const AttendCase& attend_case, backend::Backend& backend, std::byte fill);
// The cases of the table: views of all heads, and of some.
[[nodiscard]] std::vector<AttendCase> attend_cases();
[[nodiscard]] std::vector<AttendCase> attend_view_cases();
[[nodiscard]] std::string describe(const AttendCase& attend_case);

}  // namespace foldkv::test
